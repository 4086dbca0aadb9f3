package capture

import (
	"context"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/deliver"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// QueueStatus counts turns, once for each of their groups. Pending and Dead are what the
// spool holds now. The other counts begin when the file was made, unless they say
// otherwise.
type QueueStatus struct {
	Pending   int        `json:"pending"`   // not known to be kept
	UnderWay  int        `json:"under_way"` // of the pending: handed over, and not seen yet
	Delivered int        `json:"delivered"`
	Verified  int        `json:"verified"` // delivered, and seen in the memory
	Dropped   int        `json:"dropped"`
	Evicted   int        `json:"evicted"` // of the dropped: those above the bounds or too old; by this process, since its start
	Dead      int        `json:"dead"`
	Lost      int        `json:"lost"`            // by the memory, and sent again; since the start
	Redacted  int        `json:"redacted"`        // credentials taken out; since the start
	Shortened int        `json:"shortened"`       // texts whose middle was left out; since the start
	LeftOut   int        `json:"left_out"`        // turns of histories for which there was no room; since the start
	GivenUp   int        `json:"answers_dropped"` // answers that were not read (response.Workers.Dropped); since the start
	NotKept   int        `json:"not_kept"`        // turns lost because data_dir cannot be used; since the start
	InMemory  int        `json:"in_memory"`       // turns that wait for data_dir in RAM, and end with the process
	Bytes     int        `json:"bytes"`
	Oldest    *time.Time `json:"oldest,omitempty"`
	Failing   *time.Time `json:"failing_since,omitempty"`
	Quiet     *time.Time `json:"quiet_since,omitempty"` // since when nothing under way has become visible
	Stalled   *time.Time `json:"stalled_since,omitempty"`
	Breaker   string     `json:"breaker"`                  // closed, half-open or open
	Unlisted  *time.Time `json:"unlisted_since,omitempty"` // since when turns cannot be verified by a listing
	LastError string     `json:"last_error,omitempty"`
	Remedy    string     `json:"remedy,omitempty"` // what to do about it

	// Diagnosis says in a word why nothing is kept, or not verified.
	Diagnosis graphiti.Diagnosis `json:"diagnosis,omitempty"`

	// Since when turns cannot be kept in data_dir, why, and what to do about it.
	Unkept       *time.Time `json:"not_kept_since,omitempty"`
	UnkeptError  string     `json:"not_kept_error,omitempty"`
	UnkeptRemedy string     `json:"not_kept_remedy,omitempty"`

	// Delivers says whether this process delivers: of several replicas only one does.
	Delivers bool `json:"delivers"`

	// Only where several replicas share a queue. All of the above is about that
	// queue.
	Replica     string     `json:"replica,omitempty"`           // this one
	Deliverer   string     `json:"deliverer,omitempty"`         // the one that delivers
	Here        int        `json:"waiting_here,omitempty"`      // turns that the others cannot see yet
	SharedDown  *time.Time `json:"shared_down_since,omitempty"` // since when they cannot be reached
	SharedError string     `json:"shared_error,omitempty"`
}

// Status says how the queue is.
func (p *Pipeline) Status() QueueStatus {
	s := QueueStatus{Redacted: int(p.redacted.Load()), Shortened: int(p.shortened.Load())}
	p.record.status(&s)
	p.waiting.status(&s, p.Fault())
	return s
}

func (b *outbox) status(s *QueueStatus) {
	oldest, err := b.spool.Oldest()
	if b.replicas != nil { // others change it, too
		if sizes, totals, err := b.replicas.spool.Counts(context.Background()); err == nil {
			b.mu.Lock()
			b.held, b.totals = sizes, totals
			b.mu.Unlock()
		}
	}
	d := b.loop.Status()
	b.mu.Lock()
	defer b.mu.Unlock()
	// A turn can be delivered before the writer that added it has counted it.
	s.Pending, s.Dead = max(0, b.held.Pending.Turns), b.held.Dead.Turns
	s.Delivered, s.Verified, s.Dropped = b.totals.Delivered, b.totals.Verified, b.totals.Dropped
	s.Evicted, s.Bytes = int(b.evicted.Load()), max(0, b.held.Pending.Bytes)+b.held.Dead.Bytes
	s.Delivers = b.replicas == nil
	if err == nil {
		s.Oldest = at(oldest)
	}
	s.Quiet = at(d.Quiet)
	s.delivery(&d)
	b.replicaStatusLocked(s)
}

// delivery adds how delivery goes, here or where the replica is that delivers.
func (s *QueueStatus) delivery(d *deliver.Status) {
	s.UnderWay, s.Lost, s.Breaker, s.Diagnosis = d.InFlight, d.Lost, d.Breaker, d.Diagnosis
	s.Failing, s.Stalled, s.Unlisted = at(d.Failing), at(d.Stalled), at(d.Unlisted)
	s.LastError, s.Remedy = d.LastError, d.Remedy
}

// at is a time, or nil where there is none.
func at(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}
