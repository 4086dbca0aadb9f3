package service

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// timeline collects the last messages that were said before a time.
type timeline struct {
	n     int
	until time.Time // zero: there is none
	all   []moment
	more  bool // a group has more than what was read of it
}

// moment is a message, and when it was said.
type moment struct {
	at time.Time
	Record
}

// momentIn reads a time as callers write it; zero for an empty one.
func momentIn(text string) (at time.Time, err error) {
	if text == "" {
		return at, nil
	}
	if at, err = time.Parse(time.RFC3339, text); err != nil {
		return at, invalid(fmt.Sprintf("before: %.60q is not a time; write e.g. 2026-11-25T12:00:00Z", text))
	}
	return at, nil
}

// reaches reports whether what was said at a time is asked for.
func (l *timeline) reaches(at time.Time) bool { return l.until.IsZero() || at.Before(l.until) }

func (l *timeline) add(at time.Time, r Record) {
	r.Time = at.UTC().Format(time.RFC3339)
	l.all = append(l.all, moment{at, r})
}

// episodes returns the last ones of a group, oldest first: what was said at the same
// moment as the first of them is among them, so that the next page misses nothing.
func (sv *Service) episodes(ctx context.Context, group string, l *timeline) (list []graphiti.Episode, err error) {
	if l.until.IsZero() {
		list, err = sv.o.Memory.Episodes(ctx, group, l.n)
		l.more = l.more || len(list) == l.n
		return list, err
	}
	if o, ok := sv.o.Memory.Outliner(); ok {
		var all []graphiti.Heading
		err = o.Outline(ctx, group, func(h *graphiti.Heading) {
			if l.reaches(h.Said) {
				all = append(all, *h)
			}
		})
		if err != nil {
			return nil, err
		}
		var places []int64
		for _, h := range lastOf(l, all, func(h graphiti.Heading) time.Time { return h.Said }) {
			places = append(places, h.Place)
		}
		return o.EpisodesAt(ctx, group, places)
	}
	// Graphiti lists its newest episodes only: to go back all of them are read.
	ctx, cancel := context.WithTimeout(ctx, catalogTimeout)
	defer cancel()
	err = sv.o.Memory.Export(ctx, group, func(e graphiti.Episode) error {
		if l.reaches(e.ValidAt) {
			list = append(list, e)
		}
		return nil
	})
	return lastOf(l, list, func(e graphiti.Episode) time.Time { return e.ValidAt }), err
}

// lastOf returns the last ones of a group by when they were said.
func lastOf[T any](l *timeline, all []T, at func(T) time.Time) []T {
	slices.SortStableFunc(all, func(a, b T) int { return at(a).Compare(at(b)) })
	from := firstOfPage(len(all), l.n, func(i, j int) bool { return at(all[i]).Equal(at(all[j])) })
	l.more = l.more || from > 0
	return all[from:]
}

// firstOfPage is where the last n of some messages begin, and with them those that were
// said at the same moment as the first of them.
func firstOfPage(all, n int, same func(i, j int) bool) int {
	from := max(0, all-n)
	for from > 0 && all-from < maxShown && same(from-1, from) {
		from--
	}
	return from
}

// page returns the messages, and before when there are more.
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
	if l.until.IsZero() { // some of the same moment may be missing
		at = at.Add(time.Millisecond)
	}
	return list, momentOf(at)
}
