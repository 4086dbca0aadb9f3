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
	"github.com/graphiti-proxy/graphiti-proxy/internal/terminal"
)

// printer writes the lines of a section.
type printer struct{ io.Writer }

// line writes a line below the first one of a section, if it applies.
func (p printer) line(applies bool, format string, args ...any) {
	if applies {
		fmt.Fprintf(p, "          "+format+"\n", args...)
	}
}

// since returns the time since t in seconds, or 0 for nil.
func since(t *time.Time) time.Duration {
	if t == nil {
		return 0
	}
	return time.Since(*t).Round(time.Second)
}

// when formats a time for people, or nil as "".
func when(t *time.Time) string {
	if t == nil {
		return ""
	}
	return t.Local().Format(time.DateTime)
}

// Print writes the state of the memory and of the queue for a person.
func (s *Status) Print(w io.Writer) {
	m, p := s.Memory, printer{w}
	fmt.Fprintf(w, "memory    %s, %s", m.Backend, m.State)
	if m.Where != "" {
		fmt.Fprintf(w, ", %s", m.Where)
	}
	fmt.Fprintln(w)
	p.line(m.State != StateOff, "recall %s, ingestion %s", onOff[m.Recall], onOff[m.Ingest]) // off implies both
	p.line(len(m.Outcomes) > 0, "requests since the start: %s", outcomes(m.Outcomes))
	messages := outcomes(s.Messages)
	p.line(messages != "", "messages since the start: %s", messages)
	p.line(s.Queue.Held > 0, "%s held until their conversations show whether a person wrote them; memory show lists them", terminal.Count(s.Queue.Held, "message"))
	if d := m.Distil; d != nil {
		p.line(true, "facts from %s today: %s of %s, %d refused; %d of %d tokens", d.Endpoint,
			terminal.Count(d.Today.Facts, "fact"), terminal.Count(d.Today.Calls, "call"), d.Today.Refused, d.Today.Tokens, d.DailyTokens)
		p.line(d.Paused, "facts are paused: distil.pause is set, or the consent was withdrawn")
		p.line(!d.Paused && d.Problem != "", "latest problem with facts: %s", d.Problem)
	}
	p.line(s.Queue.Episodes > 0, "Graphiti got %s since the start; it does not report the calls and tokens of its model (measured: 0.4 to 1.0 calls and 900 to 2,700 tokens a turn, "+
		"with a distiller 0.3 calls and 400 to 700)", terminal.Count(s.Queue.Episodes, "episode"))
	p.line(s.Bill != "", "%s", s.Bill)
	p.line(m.Since != nil, "a problem since %s", when(m.Since))
	PrintQueue(w, &s.Queue)
	for _, n := range s.Needs() {
		fmt.Fprintf(w, "%-10s%s\n", n.Of, terminal.Printable(n.What))
		p.line(n.Remedy != "", "to do: %s", terminal.Printable(n.Remedy))
	}
}

var onOff = map[bool]string{true: "on", false: "off"}

// PrintQueue writes the state of the queue for a person.
func PrintQueue(w io.Writer, q *capture.QueueStatus) {
	p := printer{w}
	fmt.Fprintf(w, "turns     %d waiting, %d delivered (%d verified), %d dropped, %d dead\n",
		q.Pending, q.Delivered, q.Verified, q.Dropped, q.Dead)
	quiet := ""
	if d := since(q.Quiet); d > 0 && q.Stalled == nil {
		quiet = "; nothing new for " + d.String()
	}
	p.line(q.UnderWay > 0, "%s not listed by the memory yet%s", terminal.Count(q.UnderWay, "sent turn"), quiet)
	p.line(q.Diagnosis != "" && q.Stalled == nil, "probably %s (%s)\n          to do: %s", q.Diagnosis.Says(), q.Diagnosis, q.Diagnosis.Remedy())
	p.line(q.Lost > 0, "%d were accepted and lost by the memory, and were sent again", q.Lost)
	p.line(q.LeftOut > 0, "%d earlier turns were not stored because the queue was full; the next request of their conversation retries", q.LeftOut)
	p.line(q.GivenUp > 0, "%d answers exceeded the limits, so their turns are not stored", q.GivenUp)
	p.line(q.Unkept != nil || q.NotKept > 0, "%d were lost because data_dir is unusable; %d wait in RAM", q.NotKept, q.InMemory)
	p.line(q.Here > 0, "%d wait in data_dir of this replica for Postgres", q.Here)
	p.line(q.Oldest != nil, "the oldest has waited for %s", since(q.Oldest))
	p.line(q.Failing != nil, "delivery has been failing for %s: %s", since(q.Failing), q.LastError)
	p.line(q.Failing != nil && q.Remedy != "", "to do: %s", q.Remedy)
	p.line(q.Stalled != nil, "the memory has accepted turns and stored none for %s; sending is paused until it stores them", since(q.Stalled))
	p.line(q.Withdrawn > 0, "%s may still be in Graphiti; the proxy deletes it when it appears, and retries", terminal.Count(q.Withdrawn, "forgotten part"))
}

// outcomes formats the counts of outcomes that occurred, the most frequent first.
func outcomes[K ~string](of map[K]int64) string {
	keys := slices.SortedFunc(maps.Keys(of), func(a, b K) int {
		return cmp.Or(cmp.Compare(of[b], of[a]), cmp.Compare(a, b))
	})
	keys = slices.DeleteFunc(keys, func(k K) bool { return of[k] == 0 })
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
