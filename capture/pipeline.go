package capture

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// ErrStopped says that no more turns are taken.
var ErrStopped = errors.New("ingestion has stopped")

// Options configures a Pipeline. All fields but OnStored are required.
type Options struct {
	Path     string // of the spool's file
	Memory   Writer
	MaxTurns int // that wait; one for each group counts as one
	MaxBytes int
	MaxAge   time.Duration
	MaxBatch int // turns in one call
	MaxChars int // of one message
	Timeout  time.Duration
	OnStored func(group string) // called when a group holds something new
	Log      *slog.Logger
}

// Writer takes what is to be remembered; graphiti.Memory is one.
type Writer interface {
	Write(ctx context.Context, group string, messages []graphiti.Message) error

	// Durable reports whether a Write that returned nil proves that the
	// messages are kept.
	Durable() bool
}

// QueueStatus counts turns, one for each group, since the process began;
// pending and dead are what the spool holds.
type QueueStatus struct {
	Pending   int        `json:"pending"`
	Delivered int        `json:"delivered"`
	Verified  int        `json:"verified"` // delivered, and known to be held
	Dropped   int        `json:"dropped"`
	Dead      int        `json:"dead"`
	Oldest    *time.Time `json:"oldest,omitempty"`
	Failing   *time.Time `json:"failing_since,omitempty"`
	LastError string     `json:"last_error,omitempty"`
}

// Pipeline keeps turns until the memory has taken them. It is safe for
// concurrent use.
type Pipeline struct {
	o     Options
	spool *spool
	wake  chan struct{} // has room for one: more say nothing new
	stop  chan struct{}
	ended chan struct{}
	base  context.Context // of the calls to the memory
	abort context.CancelFunc

	mu      sync.Mutex // guards what follows
	closed  bool
	groups  map[string]*lane
	bytes   int
	status  QueueStatus
	fullLog time.Time // when a full spool was last logged

	// lately and before hold the turns that were added last: clients repeat
	// requests, and most repeats need not be looked up in the file.
	lately, before map[string]struct{}
}

// latelyMax bounds each of the two generations of turns that are remembered.
const latelyMax = 10000

// lane is what waits for one group. Its counts may lag behind the file by what
// is being added or delivered this moment, in either direction; whether there
// is something to deliver only the file says.
type lane struct {
	backlog
	ready  bool      // something was added since the file was last looked at
	next   time.Time // not before
	active bool      // a delivery is under way
}

// Open opens the spool and begins to deliver what it holds.
func Open(o Options) (*Pipeline, error) {
	s, err := openSpool(o.Path)
	if err != nil {
		return nil, err
	}
	waiting, dead, err := s.load()
	if err != nil {
		return nil, errors.Join(err, s.db.Close())
	}
	p := &Pipeline{
		o: o, spool: s,
		wake: make(chan struct{}, 1), stop: make(chan struct{}), ended: make(chan struct{}),
		groups: make(map[string]*lane),
	}
	p.base, p.abort = context.WithCancel(context.Background())
	p.status.Dead = dead
	for group, b := range waiting {
		p.groups[group] = &lane{backlog: b, ready: true}
		p.status.Pending += b.turns
		p.bytes += b.bytes
	}
	// Ends when Shutdown closes stop.
	go p.run()
	return p, nil
}

// Add stores a turn for its groups, less those that have it already. It is on
// disk when Add returns, and never waits for the memory.
func (p *Pipeline) Add(ctx context.Context, t Turn) error {
	p.mu.Lock()
	closed, again := p.closed, p.addedLatelyLocked(t.ID)
	p.mu.Unlock()
	switch {
	case closed:
		return ErrStopped
	case again:
		return nil
	}
	groups, size, err := p.spool.add(ctx, &t, time.Now())
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.rememberLocked(t.ID)
	for _, g := range groups {
		p.countLocked(g, backlog{1, size})
		p.groups[g].ready = true
	}
	over := p.status.Pending > p.o.MaxTurns || p.bytes > p.o.MaxBytes
	p.mu.Unlock()
	if over {
		p.makeRoom()
	}
	p.signal()
	return nil
}

// AddedLately reports whether a turn was added not long ago: its answer need
// not be read again. It does not ask the file.
func (p *Pipeline) AddedLately(turn string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.addedLatelyLocked(turn)
}

func (p *Pipeline) addedLatelyLocked(turn string) bool {
	_, ok := p.lately[turn]
	if !ok {
		_, ok = p.before[turn]
	}
	return ok
}

func (p *Pipeline) rememberLocked(turn string) {
	if p.lately == nil || len(p.lately) >= latelyMax {
		p.before, p.lately = p.lately, make(map[string]struct{})
	}
	p.lately[turn] = struct{}{}
}

// makeRoom drops the oldest turns until the spool is within its bounds.
func (p *Pipeline) makeRoom() {
	for {
		p.mu.Lock()
		n := p.status.Pending - p.o.MaxTurns
		if p.bytes > p.o.MaxBytes {
			n = max(n, 1)
		}
		p.mu.Unlock()
		if n <= 0 {
			return
		}
		gone, err := p.spool.dropOldest(n)
		if err != nil {
			p.o.Log.Warn("the spool is over its bounds and cannot be cut", "error", err)
			return
		}
		if p.forget(gone, "the spool is full; these were the oldest") == 0 {
			return
		}
	}
}

// forget takes dropped turns off the counts, and logs them once a minute.
func (p *Pipeline) forget(gone map[string]backlog, why string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := 0
	for group, b := range gone {
		n += b.turns
		p.countLocked(group, backlog{-b.turns, -b.bytes})
		p.tidyLocked(group)
	}
	p.status.Dropped += n
	if now := time.Now(); n > 0 && now.Sub(p.fullLog) > time.Minute {
		p.fullLog = now
		p.o.Log.Warn("turns that waited are dropped", "why", why, "dropped_in_all", p.status.Dropped)
	}
	return n
}

// countLocked adds b, which may be negative, to what waits for a group.
func (p *Pipeline) countLocked(group string, b backlog) {
	p.status.Pending += b.turns
	p.bytes += b.bytes
	l := p.groups[group]
	if l == nil {
		l = &lane{}
		p.groups[group] = l
	}
	l.turns += b.turns
	l.bytes += b.bytes
}

// tidyLocked lets go of a group for which nothing waits.
func (p *Pipeline) tidyLocked(group string) {
	if l := p.groups[group]; l != nil && l.turns == 0 && !l.active && !l.ready {
		delete(p.groups, group)
	}
}

// Status says how the queue is.
func (p *Pipeline) Status() QueueStatus {
	oldest, err := p.spool.oldest()
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.status
	if err == nil && !oldest.IsZero() {
		s.Oldest = &oldest
	}
	return s
}

// Shutdown takes no more turns, delivers what is due until ctx ends, and
// closes the spool. What is left is delivered by the next process.
func (p *Pipeline) Shutdown(ctx context.Context) error {
	p.mu.Lock()
	again := p.closed
	p.closed = true
	p.mu.Unlock()
	if !again {
		close(p.stop)
	}
	select {
	case <-p.ended:
	case <-ctx.Done():
		p.abort()
		<-p.ended
	}
	p.abort()
	if again {
		return nil
	}
	return p.spool.db.Close()
}

func (p *Pipeline) signal() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}
