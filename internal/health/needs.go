package health

import (
	"fmt"
	"strings"

	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/terminal"
)

// Need is a problem that needs attention.
type Need struct {
	Of           Part
	What, Remedy string
}

// Part is the part of a proxy that has a problem.
type Part string

// The parts of a proxy, as labels of their problems. Memory and turns have sections of their own.
const (
	OfMemory   Part = "problem"
	OfPeople   Part = "people"
	OfQuota    Part = "quota"
	OfQueue    Part = "delivery"
	OfPending  Part = "pending"
	OfClient   Part = "client"
	OfProject  Part = "project"
	OfSettings Part = "settings"
)

// maxUnconfirmed limits the people in Needs.
const maxUnconfirmed = 10

// Needs lists the problems, the most urgent first.
func (s *Status) Needs() (list []Need) {
	add := func(of Part, what, remedy string) { list = append(list, Need{of, what, remedy}) }
	switch m := &s.Memory; {
	case m.Why == "":
	case m.State == StateOff:
		add(OfMemory, "the memory is off: "+m.Why, m.Remedy)
	default:
		add(OfMemory, m.Why, m.Remedy)
	}
	if n := len(s.Blocked); n > 0 {
		add(OfMemory, terminal.Count(n, "group")+" blocked until a forget succeeds, without recall, and new turns wait: "+strings.Join(s.Blocked, ", "),
			"the proxy retries automatically; to see the cause, run the same memory forget again")
	}
	for i, u := range s.Unconfirmed {
		if i == maxUnconfirmed {
			add(OfPeople, fmt.Sprintf("%d more people of identity.users_file have no memory", len(s.Unconfirmed)-i), "to see all of them, run graphiti-proxy status --json")
			break
		}
		add(OfPeople, u.ID+" has no memory: "+u.Why, u.Remedy)
	}
	for _, full := range s.Queue.Full {
		add(OfQuota, full, capture.FullRemedy)
	}
	if n := s.Queue.Dead; n > 0 {
		add(OfQueue, terminal.Count(n, "turn")+" could not be delivered", "check the cause with graphiti-proxy queue list --state dead, then retry or drop them")
	}
	if n := s.PendingLines; n > 0 {
		add(OfPending, terminal.Count(n, "line")+" waiting for your confirmation", "graphiti-proxy memory pending")
	}
	for i := range s.Clients {
		c := &s.Clients[i]
		c.Each(func(n int64, is graphiti.Sign) {
			add(OfClient, fmt.Sprintf("%s, %s: %s", strings.TrimSpace(c.Name+" "+c.Version), terminal.Count(int(n), "time"), is.Says), is.Remedy)
		})
	}
	for _, a := range s.Apart {
		add(OfProject, a.Directory+" has the remote of "+a.Workspace+", but a separate memory", a.Remedy)
	}
	if len(s.Waiting) > 0 {
		add(OfSettings, "changed settings need a restart: "+strings.Join(s.Waiting, ", "), "restart graphiti-proxy")
	}
	return list
}
