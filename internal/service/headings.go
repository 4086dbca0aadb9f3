package service

import (
	"context"
	"errors"
	"hash/maphash"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

var errForgetting = errors.New("it is being forgotten")

// headings calls f for each message that a group holds, or that waits for it. text is what
// the message says, if that was read: a memory that knows its messages is not asked for
// their texts.
func (sv *Service) headings(ctx context.Context, group string, f func(h *graphiti.Heading, text string)) error {
	if sv.o.State.Generations.Blocks(group) {
		return errForgetting
	}
	waiting := make(map[string]bool)
	one := func(name string, role graphiti.RoleType, text, source string, at time.Time) {
		h := sv.heading(name, role, source, at)
		f(&h, text)
	}
	err := sv.o.Pipeline.Waiting(ctx, ledger.Part{Group: group}, func(g graphiti.Message) error {
		waiting[g.Name] = true
		one(g.Name, g.RoleType, g.Content, g.SourceDescription, g.Timestamp)
		return nil
	})
	if err != nil {
		return err
	}
	if o, ok := sv.o.Memory.Outliner(); ok {
		return withRemedy(o.Outline(ctx, group, func(h *graphiti.Heading) { f(h, "") }))
	}
	listed := false
	err = sv.o.Memory.Export(ctx, group, func(e graphiti.Episode) error {
		listed = true
		for _, said := range e.Sides() {
			if !waiting[said.Name] { // else it was handed over, and is not known to have arrived
				one(said.Name, said.Role, said.Text, e.SourceDescription, e.ValidAt)
			}
		}
		return nil
	})
	if err != nil {
		return withRemedy(err)
	}
	if listed {
		return nil
	}
	return sv.emptyOrUnlisted(ctx, group)
}

// heading is what is known of a message without its text.
func (sv *Service) heading(name string, role graphiti.RoleType, source string, at time.Time) graphiti.Heading {
	h := graphiti.Heading{Name: maphash.String(sv.seed, name), Talk: ledger.SessionOf(source), Role: role, Said: at}
	if turn, ours := graphiti.TurnOf(name); ours && name != graphiti.EpisodeName(turn, graphiti.RoleSystem) {
		h.Turn = maphash.String(sv.seed, turn)
	}
	return h
}

// spanned counts messages, and notes when the first and the last of them were said.
type spanned struct {
	messages    int
	first, last time.Time
}

func (s *spanned) count(at time.Time) {
	s.messages++
	if at.IsZero() {
		return
	}
	if s.first.IsZero() || at.Before(s.first) {
		s.first = at
	}
	if at.After(s.last) {
		s.last = at
	}
}

func (s *spanned) span() Span {
	return Span{Messages: s.messages, First: momentOf(s.first), Last: momentOf(s.last)}
}

// momentOf is a time as lists have it: of one length, so that two can be compared.
func momentOf(at time.Time) string {
	if at.IsZero() {
		return ""
	}
	return at.UTC().Format("2006-01-02T15:04:05.000Z07:00")
}
