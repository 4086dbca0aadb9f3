package inject

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/inject/proof"
)

// Redact removes credentials from a text before it is stored or searched for. It gives up
// at the given time, unless that is zero, and then returns ok false and no text.
type Redact func(text string, by time.Time) (redacted string, ok bool)

// Decides reports whether a message states a decision, for the notes of its session.
type Decides func(ctx context.Context, said string) bool

// Services holds the dependencies of a Planner. A nil service has no effect.
type Services struct {
	Search    graphiti.Searcher
	Decisions Decisions
	Snapshots Snapshots // short-term memory
	Opening   Opening   // cards and summaries
	Redact    Redact
	Decides   Decides          // of messages of persons
	Proof     *proof.Proof     // experiment that withholds blocks; nil for none
	Now       func() time.Time // clock for the ages of facts
	Log       *slog.Logger
}

// Groups maps callers to groups.
type Groups interface {
	Reads(w graphiti.Who, about bool) []graphiti.Target // groups to search, in order of preference
	Writes(w graphiti.Who) []graphiti.Target

	// Beside returns the group to search in a project for facts that matter in all of the
	// person's projects. ok is false if there is none.
	Beside(w graphiti.Who) (t graphiti.Target, ok bool)
}

// RecallSettings configures a Planner.
type RecallSettings struct {
	Timeout    time.Duration // maximum delay of a request, including storage
	MaxFacts   int           // facts per block
	Asked      int           // results requested per group
	MaxChars   int           // characters per block
	StaleAfter time.Duration // facts older than this carry their age
	MinScore   float64       // strength required of the best result, 0 to 1; 0 disables the check
	Share      float64       // maximum share of the model's context window, in characters; 0 leaves only MaxChars
	Window     int           // context window of unlisted models, in tokens
	CardChars  int           // characters of the card; 0 disables it
	Resume     time.Duration // maximum age of the previous conversation that a new one mentions; 0 disables it
	Compaction bool          // insert memory into summary requests
	Unseen     int           // number of turns that Plan.Unseen goes back for turns without a decision
}

// options holds the active services and settings.
type options struct {
	*Services
	Groups
	RecallSettings
}

// Planner decides about blocks. It is safe for concurrent use.
type Planner struct {
	o      atomic.Pointer[options]
	base   context.Context // parent of searches and of changes of notes
	cancel context.CancelFunc

	noting [64]sync.Mutex // serialize changes of a session's notes, by its key

	mu      sync.Mutex // protects the fields below
	closed  bool
	running sync.WaitGroup
}

// New returns a Planner that is ready for use.
func New(s Services, g Groups, set RecallSettings) *Planner {
	m := new(Planner)
	m.o.Store(&options{&s, g, set})
	m.base, m.cancel = context.WithCancel(context.Background())
	return m
}

func (m *Planner) opts() *options { return m.o.Load() }

// Set replaces the groups and settings, from the next request on.
func (m *Planner) Set(g Groups, set RecallSettings) { m.o.Store(&options{m.opts().Services, g, set}) }

// Close cancels searches and waits for them.
func (m *Planner) Close() {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.cancel()
	m.running.Wait()
}

// begin reports whether a search may start. Close waits for it until running.Done.
func (m *Planner) begin() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return false
	}
	m.running.Add(1)
	return true
}
