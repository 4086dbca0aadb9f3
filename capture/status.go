package capture

import (
	"context"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// QueueStatus counts turns, once per group. Pending and Dead are the current content of the
// spool. The other counts start with the creation of the file unless stated otherwise.
type QueueStatus struct {
	Pending   int `json:"pending"`   // delivery is not verified yet, or held for a moment
	UnderWay  int `json:"under_way"` // part of Pending: sent, not verified
	Delivered int `json:"delivered"`
	Verified  int `json:"verified"` // delivered, and shown by the memory
	Dropped   int `json:"dropped"`
	Dead      int `json:"dead"`
	Withdrawn int `json:"withdrawn"`              // forgotten messages, sessions and groups that may still be in the memory
	Lost      int `json:"lost"`                   // lost by the memory and sent again, since the start
	Held      int `json:"held"`                   // turns held until their sessions show whether they are some
	Redacted  int `json:"redacted"`               // redacted credentials, since the start
	Shortened int `json:"shortened"`              // texts shortened in the middle, since the start
	LeftOut   int `json:"left_out"`               // turns of histories that exceeded the bounds, since the start
	GivenUp   int `json:"answers_dropped"`        // answers that were not parsed (response.Readers.Dropped), since the start
	NotKept   int `json:"not_kept"`               // turns lost because data_dir was unusable, since the start
	InMemory  int `json:"in_memory"`              // turns waiting in RAM for data_dir; they end with the process
	Here      int `json:"waiting_here,omitempty"` // turns that wait in data_dir for Postgres

	SharedDown *time.Time `json:"shared_state_down_since,omitempty"` // start of an outage of Postgres
	Oldest     *time.Time `json:"oldest,omitempty"`
	Episodes   int        `json:"graphiti_episodes,omitempty"` // messages that Graphiti accepted since the start
	Failing    *time.Time `json:"failing_since,omitempty"`
	Quiet      *time.Time `json:"quiet_since,omitempty"` // last progress while turns are under way
	Stalled    *time.Time `json:"stalled_since,omitempty"`
	LastError  string     `json:"last_error,omitempty"`
	Remedy     string     `json:"remedy,omitempty"` // remedy for LastError

	Distilled graphiti.Spent `json:"-"` // of the model that distils facts, since the start

	// Diagnosis is the reason for a stall.
	Diagnosis graphiti.Diagnosis `json:"diagnosis,omitempty"`

	// Start, reason and remedy of a failure of data_dir.
	Unkept       *time.Time `json:"not_kept_since,omitempty"`
	UnkeptError  string     `json:"not_kept_error,omitempty"`
	UnkeptRemedy string     `json:"not_kept_remedy,omitempty"`

	Full []string `json:"full,omitempty"` // reached quotas, in words

	// Delivers reports whether this process delivers.
	Delivers bool `json:"delivers"`
}

// Status returns the current state of the queue.
func (p *Pipeline) Status() QueueStatus {
	s := QueueStatus{Redacted: int(p.redacted.Load()), Shortened: int(p.shortened.Load()), Held: p.doubts.count(), Full: p.full(), Delivers: true}
	if t, err := p.Totals(); err == nil {
		s.Delivered, s.Verified, s.Dropped = t.Delivered, t.Verified, t.Dropped
	}
	if p.out != nil {
		p.out.status(&s)
	}
	p.waiting.status(&s, p.Fault())
	if p.journal != nil {
		s.Here = int(p.journal.turns.Load())
	}
	s.Pending += p.doubts.brief()
	return s
}

func (b *outbox) status(s *QueueStatus) {
	if n, err := b.Counts(context.Background()); err == nil {
		s.Pending, s.Dead, s.Oldest, s.Withdrawn = n.Pending, n.Dead, at(n.Oldest), n.Withdrawn
	}
	d := b.loop.Status()
	s.Delivers, s.Episodes = b.leads.Load(), d.Episodes
	s.UnderWay, s.Lost, s.Diagnosis = d.InFlight, d.Lost, d.Diagnosis
	s.Failing, s.Quiet, s.Stalled = at(d.Failing), at(d.Quiet), at(d.Stalled)
	s.LastError, s.Remedy = d.LastError, d.Remedy
}

// at returns a pointer to t, or nil if t is zero.
func at(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
