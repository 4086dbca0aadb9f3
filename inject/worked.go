package inject

import (
	"context"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/inject/work"
)

// Round is a tool round, and Done the work in it.
type (
	Round = work.Round
	Done  = work.Done
)

// Read returns the work in a tool round, without credentials.
func (m *Planner) Read(r *Round) Done {
	r.Redact = func(text string) string {
		text, _ = m.opts().Redact(text, time.Time{})
		return text
	}
	return r.Read()
}

// Worked adds the work in a tool round to the notes of its session. It may wait for a file, so
// requests must not call it.
func (m *Planner) Worked(who graphiti.Who, generation int64, d *Done) {
	if who.Session == "" || len(d.Changed) == 0 && !d.IsList {
		return
	}
	ctx, cancel := context.WithTimeout(m.base, noteTime)
	defer cancel()
	err := m.note(ctx, who, generation, func(s *snapshot) {
		if d.IsList {
			s.Work.Tasks = d.Tasks
		}
		for _, f := range d.Changed {
			s.Files = latestOf(s.Files, f, maxNoteFiles)
		}
	})
	if err != nil {
		m.opts().Log.Debug("write session snapshot failed", "error", err)
	}
}
