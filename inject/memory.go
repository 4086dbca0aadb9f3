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

// Redact takes credentials out of a text, before it is kept or asked for. It
// gives up at a time, when there is one; then there is no text.
type Redact func(text string, by time.Time) (redacted string, ok bool)

// Services are what a Memory works with. They stay what they are; what is nil does
// nothing.
type Services struct {
	Search    Searcher
	Recent    Recent // beside a memory that takes its time
	Facts     FactCache
	Decisions Decisions
	Snapshots Snapshots // short-term memory
	Opening   Opening   // what conversations begin with
	Redact    Redact
	Memo      *memo.Memo // what is known of the sessions of the moment
	Log       *slog.Logger
}

// Groups are those of a caller.
type Groups interface {
	Reads(w graphiti.Who, about bool) []graphiti.Target // to search, in order of preference
	Writes(w graphiti.Who) []graphiti.Target
}

// Settings control decisions.
type Settings struct {
	Timeout    time.Duration // the most that a request may wait, storing included
	Background time.Duration // for a search that goes on behind the request
	MaxFacts   int           // of a block
	Asked      int           // of a search, in each group
	MaxChars   int           // of a block, in characters
	StaleAfter time.Duration // facts older than this are marked
	Guard      Guard         // of facts that read like instructions
	MinScore   float64       // strength that one of the facts found must have, from 0 to 1; 0: none
	Drift      float64       // likeness of what is found to what is visible from which nothing new is shown; 0: never
	Share      float64       // of the model's context window, in characters, that a block may take; 0: MaxChars counts alone
	Window     int           // of models that are not known, in tokens
	NoWait     bool          // a request does not wait for a search
	CardChars  int           // of the card, in characters; 0: none
	Resume     time.Duration // how long ago the last conversation may be to be mentioned in a new one; 0: it never is
	Prefetch   bool          // after each turn, for the next one
	Similar    float64       // likeness of a question's terms to those of what was looked up after the turn before from which that answers at once
	Compaction bool          // who summarises a conversation is told what is known
	Unseen     int           // most earlier turns in Plan.Unseen that nobody knew
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

// begin reports whether something may begin that Close is to wait for. It ends
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
