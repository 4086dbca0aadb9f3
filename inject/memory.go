package inject

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/singleflight"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/memo"
)

// Redact takes credentials out of a text, before the text is kept or searched for. It
// gives up at a time, unless that is zero. If it gives up, ok is false and there is no
// text.
type Redact func(text string, by time.Time) (redacted string, ok bool)

// Services are what a Memory works with. They do not change. A service that is nil does
// nothing.
type Services struct {
	Search    Searcher
	Recent    Recent // what a remote memory may not have worked off
	Facts     FactCache
	Decisions Decisions
	Snapshots Snapshots // short-term memory
	Opening   Opening   // what conversations begin with
	Redact    Redact
	Memo      *memo.Memo // what is known of the sessions of the moment
	Log       *slog.Logger
}

// Groups names the groups of a caller.
type Groups interface {
	Reads(w graphiti.Who, about bool) []graphiti.Target // to search, in order of preference
	Writes(w graphiti.Who) []graphiti.Target
}

// Settings say how a Memory decides.
type Settings struct {
	Timeout    time.Duration // the most that a request may wait, storing included
	Background time.Duration // the most that a search in the background may take
	MaxFacts   int           // most facts of a block
	Asked      int           // most facts that a search asks for, in each group
	MaxChars   int           // most characters of a block
	StaleAfter time.Duration // facts older than this are marked
	Guard      Guard         // of facts that read like instructions
	MinScore   float64       // strength, from 0 to 1, that the strongest fact must have for any to be shown; 0: none
	Drift      float64       // likeness of what is found to what is visible from which nothing new is shown; 0: never
	Share      float64       // share of the model's context window, in characters, that a block may take; 0: only MaxChars bounds it
	Window     int           // of models that are not known, in tokens
	NoWait     bool          // a request does not wait for a search
	CardChars  int           // most characters of the card; 0: no card is shown
	Resume     time.Duration // a new conversation mentions the last one if that is not longer ago; 0: never
	Prefetch   bool          // facts are searched after each turn, for the next one
	Similar    float64       // how alike the terms of a question and of the last prefetch must be for the prefetch to answer it at once
	Compaction bool          // a request to summarise gets what is known, too
	Unseen     int           // how many turns back Plan.Unseen looks for turns without a decision
}

// options are what is in force.
type options struct {
	*Services
	Groups
	Settings
}

// Memory decides what is inserted into requests. It is safe for concurrent
// use.
type Memory struct {
	o      atomic.Pointer[options]
	base   context.Context // of searches that outlive their request
	cancel context.CancelFunc

	flights singleflight.Group // searches under way
	times   times              // of searches
	warming chan struct{}      // holds a token for each prefetch under way

	mu      sync.Mutex // guards what follows
	closed  bool
	running sync.WaitGroup
}

// New returns a Memory that is ready for use.
func New(s Services, g Groups, set Settings) *Memory {
	m := &Memory{warming: make(chan struct{}, prefetches)}
	m.o.Store(&options{s.orNothing(), g, set})
	m.base, m.cancel = context.WithCancel(context.Background())
	return m
}

// opts are the options in force.
func (m *Memory) opts() *options { return m.o.Load() }

// Set changes how the memory decides, from the next request on.
func (m *Memory) Set(g Groups, set Settings) { m.o.Store(&options{m.opts().Services, g, set}) }

// Close ends the searches that go on in the background and waits for them.
func (m *Memory) Close() {
	m.mu.Lock()
	m.closed = true
	m.mu.Unlock()
	m.cancel()
	m.running.Wait()
}

// begin reports whether background work may begin. Close waits for the work, which ends
// with running.Done.
func (m *Memory) begin() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return false
	}
	m.running.Add(1)
	return true
}
