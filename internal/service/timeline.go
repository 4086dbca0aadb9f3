package service

import (
	"fmt"
	"slices"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// timeline collects the last n messages before a time.
type timeline struct {
	n     int
	until time.Time // zero for no limit
	all   []moment
	more  bool // a group has earlier messages that were not read
}

// moment is a message with its time.
type moment struct {
	at time.Time
	Record
}

// momentIn parses a time. It returns zero for an empty text.
func momentIn(text string) (at time.Time, err error) {
	if text == "" {
		return at, nil
	}
	if at, err = time.Parse(time.RFC3339, text); err != nil {
		return at, invalid(fmt.Sprintf("before: %.60q is not a time; write e.g. 2026-11-25T12:00:00Z", text))
	}
	return at, nil
}

// filter returns the filter for one group. A session is read as a whole. The last messages are
// those with the latest times: an import may store older ones later.
func (l *timeline) filter(session bool) graphiti.Filter {
	f := graphiti.Filter{Before: l.until, Text: true}
	if !session {
		f.Last, f.Newest = l.n, true
	}
	return f
}

// firstOfPage returns the index of the first of the last n messages, or of the first one with
// the same time.
func firstOfPage(all, n int, same func(i, j int) bool) int {
	from := max(0, all-n)
	for from > 0 && all-from < maxShown && same(from-1, from) {
		from--
	}
	return from
}

// page returns the messages, and the time before which there are more.
func (l *timeline) page() (list []Record, earlier string) {
	slices.SortStableFunc(l.all, func(a, b moment) int { return a.at.Compare(b.at) })
	same := func(i, j int) bool { return l.all[i].at.Equal(l.all[j].at) }
	from := max(0, len(l.all)-l.n)
	if !l.until.IsZero() {
		from = firstOfPage(len(l.all), l.n, same)
	}
	list = make([]Record, 0, len(l.all)-from)
	for _, m := range l.all[from:] {
		list = append(list, m.Record)
	}
	if len(list) == 0 || from == 0 && !l.more {
		return list, ""
	}
	at := l.all[from].at
	if l.until.IsZero() { // more of this moment may exist
		at = at.Add(time.Millisecond)
	}
	return list, momentOf(at)
}
