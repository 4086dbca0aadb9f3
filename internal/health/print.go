package health

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/terminal"
)

// Print writes the state of the memory and of the queue for a person.
func (s *Status) Print(w io.Writer) {
	m := s.Memory
	fmt.Fprintf(w, "memory    %s, %s", m.Backend, m.State)
	if m.Where != "" {
		fmt.Fprintf(w, ", %s", m.Where)
	}
	fmt.Fprintln(w)
	if m.State != StateOff { // off implies both
		fmt.Fprintf(w, "          recall %s, ingestion %s\n", onOff(m.Recall), onOff(m.Ingest))
	}
	if len(m.Outcomes) > 0 {
		fmt.Fprintf(w, "          requests since the start: %s\n", outcomes(m.Outcomes))
	}
	if len(s.Messages) > 0 {
		fmt.Fprintf(w, "          messages since the start: %s\n", outcomes(s.Messages))
	}
	if n := s.Queue.Held; n > 0 {
		fmt.Fprintf(w, "          %s held until their conversations show whether a person wrote them; memory show lists them\n", terminal.Count(n, "message"))
	}
	if m.ConsentSince != nil {
		fmt.Fprintf(w, "          consent for %s, since %s\n", m.ConsentFor, m.ConsentSince.Local().Format(time.DateTime))
	}
	if d := m.Distil; d != nil {
		fmt.Fprintf(w, "          facts from %s today: %s of %s, %d refused; %d of %d tokens\n", d.Endpoint,
			terminal.Count(d.Today.Facts, "fact"), terminal.Count(d.Today.Calls, "call"), d.Today.Refused, d.Today.Tokens, d.DailyTokens)
		if d.Paused {
			fmt.Fprintln(w, "          facts are paused: distil.pause is set, or the consent was withdrawn")
		} else if d.Problem != "" {
			fmt.Fprintf(w, "          latest problem with facts: %s\n", d.Problem)
		}
	}
	if s.Bill != "" {
		fmt.Fprintf(w, "          %s\n", s.Bill)
	}
	if m.Emptied > 0 {
		fmt.Fprintf(w, "          memory forget emptied %s of running conversations; those conversations get no more blocks\n", terminal.Count(m.Emptied, "block"))
	}
	if n := len(s.Blocked); n > 0 {
		fmt.Fprintf(w, "          %s blocked until memory forget succeeds: they are not recalled, and their new turns wait: %s\n",
			terminal.Count(n, "group"), strings.Join(s.Blocked, ", "))
		fmt.Fprintln(w, "          the proxy retries automatically; to see the cause, run the same memory forget again")
	}
	if m.Why != "" {
		fmt.Fprintf(w, "          %s\n", m.Why)
	}
	if m.Since != nil {
		fmt.Fprintf(w, "          since %s\n", m.Since.Local().Format(time.DateTime))
	}
	if m.Remedy != "" {
		fmt.Fprintf(w, "          to do: %s\n", m.Remedy)
	}
	s.printLines(w)
	s.printUnconfirmed(w)
	PrintQueue(w, &s.Queue)
	for i := range s.Clients {
		printClient(w, &s.Clients[i])
	}
	for _, a := range s.Apart {
		fmt.Fprintf(w, "project   %s has the remote of %s, but a separate memory\n          to do: %s\n",
			terminal.Printable(a.Directory), terminal.Printable(a.Workspace), a.Remedy)
	}
	if len(s.Waiting) > 0 {
		fmt.Fprintf(w, "settings  changed in the file, restart to apply: %s\n", strings.Join(s.Waiting, ", "))
	}
}

// printClient writes a client's possible rule problems and the remedy.
func printClient(w io.Writer, c *graphiti.ClientSigns) {
	name := strings.TrimSpace(c.Name + " " + c.Version)
	say := func(n int64, what, one, several, then string) {
		switch {
		case n == 1:
			several = one
			fallthrough
		case n > 1:
			fmt.Fprintf(w, "          %s of %s %s; %s\n", terminal.Count(int(n), what), name, several, then)
		}
	}
	say(c.UnknownTags, "turn", "begins with a tag that no rule knows", "begin with a tag that no rule knows",
		"the client may have written it instead of the person: please report its version")
	say(c.NoPlace, "request", "has no memory: its project is unknown", "have no memory: their project is unknown",
		"name the project in the header X-Graphiti-Workspace, and please report the client's version")
	say(c.NoDirectory, "request", "has the memory of its conversation only: it offers tools and names no directory", "have the memory of their conversation only: they offer tools and name no directory",
		"to do: name the project in a header X-Graphiti-Workspace, or set workspace.optional to true")
	say(c.NotHere, "request", "has no memory: its directory is not on this machine", "have no memory: their directory is not on this machine",
		"to do: name the project in a header X-Graphiti-Workspace, or set workspace.remote_paths to true if each path is one project")
	say(c.NoWords, "request", "has no words of a person", "have no words of a person, like all other requests",
		"this client has no memory; if people use it, please report its version")
	say(c.LostAnswers, "answer", "was not stored", "were not stored",
		"memory stats and the log have the reasons: for no_end or encoding please report the client and the provider")
}

// maxUnconfirmed limits the people that Print lists.
const maxUnconfirmed = 10

// printLines prints the lines that wait, and the messages that have ended statements.
func (s *Status) printLines(w io.Writer) {
	if n := s.PendingLines; n > 0 {
		fmt.Fprintf(w, "pending   %s waiting for your confirmation\n          to do: graphiti-proxy memory pending\n", terminal.Count(n, "line"))
	}
	if n := s.EndedLines; n > 0 {
		fmt.Fprintf(w, "ended     %s of the last day ended statements\n          to list and undo it: graphiti-proxy memory pending\n", terminal.Count(n, "message"))
	}
}

func (s *Status) printUnconfirmed(w io.Writer) {
	n := len(s.Unconfirmed)
	if n == 0 {
		return
	}
	fmt.Fprintf(w, "people    %d of identity.users_file have no memory until you confirm them\n", n)
	for _, u := range s.Unconfirmed[:min(n, maxUnconfirmed)] {
		fmt.Fprintf(w, "          %s: %s\n          to do: %s\n", terminal.Printable(u.ID), terminal.Printable(u.Why), terminal.Printable(u.Remedy))
	}
	if n > maxUnconfirmed {
		fmt.Fprintf(w, "          to see all of them: graphiti-proxy status --json\n")
	}
}

func onOff(b bool) string {
	if b {
		return "on"
	}
	return "off"
}

// PrintQueue writes the state of the queue for a person.
func PrintQueue(w io.Writer, q *capture.QueueStatus) {
	fmt.Fprintf(w, "turns     %d waiting, %d delivered (%d verified), %d dropped, %d dead\n",
		q.Pending, q.Delivered, q.Verified, q.Dropped, q.Dead)
	for _, full := range q.Full {
		fmt.Fprintf(w, "          %s\n          to do: %s\n", terminal.Printable(full), capture.FullRemedy)
	}
	if q.UnderWay > 0 {
		quiet := ""
		if q.Quiet != nil && q.Stalled == nil {
			if d := time.Since(*q.Quiet).Round(time.Second); d > 0 {
				quiet = "; nothing new for " + d.String()
			}
		}
		fmt.Fprintf(w, "          %d of the waiting turns have been sent, but are not listed by the memory yet%s\n", q.UnderWay, quiet)
	}
	if q.Episodes > 0 {
		fmt.Fprintf(w, "          Graphiti got %s since the start, about %d tokens; its model makes two or three calls for each, with instructions and earlier episodes\n", terminal.Count(q.Episodes, "episode"), q.Tokens)
	}
	if q.Diagnosis != "" && q.Stalled == nil && q.Unlisted == nil {
		fmt.Fprintf(w, "          probably %s (%s)\n          to do: %s\n", q.Diagnosis.Says(), q.Diagnosis, q.Diagnosis.Remedy())
	}
	if q.Lost > 0 {
		fmt.Fprintf(w, "          %d were accepted and lost by the memory, and were sent again\n", q.Lost)
	}
	if q.LeftOut > 0 {
		fmt.Fprintf(w, "          %d earlier turns were not stored because the queue was full; the next request of their conversation retries\n", q.LeftOut)
	}
	if q.GivenUp > 0 {
		fmt.Fprintf(w, "          %d answers exceeded the limits, so their turns are not stored\n", q.GivenUp)
	}
	if q.Unkept != nil || q.NotKept > 0 {
		fmt.Fprintf(w, "          %d were lost because data_dir is unusable; %d wait in RAM\n", q.NotKept, q.InMemory)
	}
	if q.Here > 0 {
		fmt.Fprintf(w, "          %d wait in data_dir of this replica for Postgres\n", q.Here)
	}
	if q.Oldest != nil {
		fmt.Fprintf(w, "          the oldest has waited for %s\n", time.Since(*q.Oldest).Round(time.Second))
	}
	if q.Failing != nil {
		fmt.Fprintf(w, "          delivery has been failing for %s: %s\n", time.Since(*q.Failing).Round(time.Second), q.LastError)
		if q.Remedy != "" {
			fmt.Fprintf(w, "          to do: %s\n", q.Remedy)
		}
	}
	if q.Stalled != nil {
		fmt.Fprintf(w, "          the memory has accepted turns and stored none for %s; sending is paused until it stores them\n", time.Since(*q.Stalled).Round(time.Second))
	}
	if q.Unlisted != nil {
		fmt.Fprintf(w, "          delivery has not been verified for %s (%s): %s\n          to do: %s\n",
			time.Since(*q.Unlisted).Round(time.Second), q.Diagnosis, q.Diagnosis.Says(), q.Diagnosis.Remedy())
	}
	if q.Withdrawn > 0 {
		fmt.Fprintf(w, "          %s may still be in Graphiti; the proxy deletes it when it appears, and retries\n", terminal.Count(q.Withdrawn, "forgotten part"))
	}
	if q.Dead > 0 {
		fmt.Fprintf(w, "          to see dead letters: graphiti-proxy queue list --state dead\n")
	}
}

// outcomes formats the counts of outcomes, the most frequent first.
func outcomes[K ~string](of map[K]int64) string {
	keys := slices.SortedFunc(maps.Keys(of), func(a, b K) int {
		return cmp.Or(cmp.Compare(of[b], of[a]), cmp.Compare(a, b))
	})
	names := make([]string, len(keys))
	for i, k := range keys {
		name := string(k)
		names[i] = fmt.Sprintf("%d %s", of[k], strings.Replace(name, ", ", " (", 1))
		if strings.Contains(name, ", ") {
			names[i] += ")"
		}
	}
	return strings.Join(names, ", ")
}
