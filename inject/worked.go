package inject

import (
	"context"
	"encoding/json"
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
		s.take()
	})
	if err != nil {
		m.opts().Log.Debug("write session snapshot failed", "error", err)
	}
}

// WorkIn returns the work in a snapshot, and the hash of its session.
func WorkIn(body []byte) (session string, turns []work.Record) {
	var s snapshot
	_ = json.Unmarshal(body, &s) // other texts have no work
	return s.Session, s.Work.Turns
}
