package inject

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/inject/work"
)

// Round is a tool round.
type Round = work.Round

// Worked adds a tool round of a turn to the notes of its session. It may wait for a file, so
// requests must not call it.
func (m *Planner) Worked(who graphiti.Who, generation int64, r *Round) {
	if who.Session == "" {
		return
	}
	r.Redact = func(text string) string {
		text, _ = m.opts().Redact(text, time.Time{})
		return text
	}
	ctx, cancel := context.WithTimeout(m.base, noteTime)
	defer cancel()
	err := m.note(ctx, who, generation, func(s *snapshot) {
		s.Work.Add(r)
		s.take(1)
	})
	if err != nil {
		m.opts().Log.Debug("write session snapshot failed", "error", err)
	}
}

// TrimWork removes the work before a time from a snapshot. It returns the rest and the number of
// turns without work now.
func TrimWork(body []byte, before time.Time) (rest []byte, n int) {
	var s snapshot
	_ = json.Unmarshal(body, &s) // other texts have no work
	turns := s.Work.Turns
	s.Work.Turns = slices.DeleteFunc(slices.Clone(turns), func(t work.Record) bool { return t.At < before.Unix() })
	if n = len(turns) - len(s.Work.Turns); n == 0 {
		return body, 0
	}
	if len(s.Work.Turns) == 0 {
		s.Work = work.Session{}
	}
	s.Files = nil
	s.take(len(s.Work.Turns))
	rest, _ = json.Marshal(s) // strings and numbers only
	return rest, n
}

// WorkIn returns the work in a snapshot, and the hash of its session.
func WorkIn(body []byte) (session string, turns []work.Record) {
	var s snapshot
	_ = json.Unmarshal(body, &s) // other texts have no work
	return s.Session, s.Work.Turns
}
