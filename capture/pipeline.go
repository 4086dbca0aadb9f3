package capture

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/capture/redact"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// ErrStopped says that no more turns are taken.
var ErrStopped = errors.New("ingestion has stopped")

// Options configures a Pipeline. All fields but OnStored, Shared and
// Told are required.
type Options struct {
	Path       string // of the spool's file
	Memory     Memory
	MaxTurns   int // in the spool; one for each group counts as one
	MaxBytes   int
	MaxAge     time.Duration
	MaxBatch   int // turns in one call
	MaxChars   int // of one message
	Timeout    time.Duration
	Verify     bool               // whether acceptance is not taken for proof
	StallAfter time.Duration      // without a sign of work
	Withheld   []string           // groups to which nothing is handed over, until Withhold is called
	Shared     *Shared            // what replicas share; nil: nothing
	Told       func(Delivery)     // is told of deliveries of turns that have a Trace; may be nil
	OnStored   func(group string) // called when a group holds something new
	Log        *slog.Logger
}

// Memory takes what is to be remembered; *graphiti.Memory is one. Its calls
// must end when their context does.
type Memory interface {
	Search(ctx context.Context, groups []string, query string, max int) ([]graphiti.Fact, error)
	Write(ctx context.Context, group string, messages []graphiti.Message) error
	Episodes(ctx context.Context, group string, n int) ([]graphiti.Episode, error)
	Forget(ctx context.Context, group string) error
	ForgetEpisodes(ctx context.Context, group string, meant func(*graphiti.Episode) bool) ([]string, error)
	Health(ctx context.Context) error

	// Durable reports whether a Write that returned nil proves that the
	// messages are kept. It must then also take no harm from the same messages
	// being written again.
	Durable() bool

	// Apart reports whether groups are worked off by themselves.
	Apart() bool

	// Clock is a time that has come by the memory's clock, as late a one as is
	// known: it may hide what speaks of a later one. Zero where it does not, or
	// where its clock is not known yet.
	Clock() time.Time
}

// Pipeline keeps turns until the memory is known to hold them. It is safe for
// concurrent use.
type Pipeline struct {
	o          atomic.Pointer[Options]
	spool      ledger.Store
	disk       *ledger.Ledger // where this process keeps turns: the same, unless it is shared
	gate       *gate
	secrets    *redact.Redactor
	redacted   atomic.Int64
	evicted    atomic.Int64 // dropped by what bounds the spool
	confirm    bool         // acceptance is no proof
	probeGroup string       // where probes are written
	wake       chan struct{}
	stop       chan struct{}
	ended      chan struct{}
	recent     recent
	async      *asyncWriter
	leftOut    atomic.Int64 // turns of histories
	worker     sync.WaitGroup
	base       context.Context // of all that is done
	abort      context.CancelFunc
	unkept     unkept     // turns that wait for the disk
	team       *team      // nil: this process is alone
	cutting    sync.Mutex // one cut at a time: two would take the same excess twice

	mu      sync.Mutex // guards what follows
	closed  bool
	paused  bool            // nothing is handed over
	calls   context.Context // of the calls to the memory
	state   *state
	held    ledger.Sizes
	totals  ledger.Totals
	lost    int
	refused refused
	given   int               // beginnings and ends of calls that handed something over
	gaveAt  time.Time         // when one did last; when the pipeline was opened where none did
	passed  int               // what that was when all had been worked off; below zero: it is not known
	drops   map[string]*drops // that were logged, by their reason

	troubleTold bool // that turns cannot be delivered
	troubleLog  time.Time
	searchErr   error // of the last search for a message of our own

	saidDatabase string // the memory's, as it said last; empty: it never did

	promoted map[string]bool // groups into which something was
}

// defaultTiming is for a Graphiti that takes seconds for a message, and not
// too slow for one that takes none.
func (o *Options) defaultTiming() timing {
	return timing{
		batch:      o.MaxBatch,
		window:     max(32, 2*o.MaxBatch),
		maxUnder:   max(256, 2*o.MaxBatch),
		olderUnder: 8,
		stallAfter: o.StallAfter,
		firstLook:  100 * time.Millisecond,
		lastLook:   30 * time.Second,
		showAfter:  min(time.Minute, o.StallAfter),
		doubtAfter: min(10*time.Second, o.StallAfter/4),
		firstProbe: min(30*time.Second, o.StallAfter/4),
		lastProbe:  5 * time.Minute,
		maxLosses:  3,
	}
}

// Open opens the spool and begins to deliver what it holds.
func Open(o Options) (*Pipeline, error) { return open(o, o.defaultTiming(), openFor) }

func open(o Options, t timing, pause time.Duration) (*Pipeline, error) {
	t.apart = o.Memory.Apart()
	s, err := ledger.Open(o.Path)
	if err != nil {
		return nil, err
	}
	redactor, err := redact.New()
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	p := &Pipeline{
		spool: s, disk: s, secrets: redactor, confirm: o.Verify && !o.Memory.Durable(),
		wake: make(chan struct{}, 1), stop: make(chan struct{}), ended: make(chan struct{}), // wake: more than one says nothing new
		recent: newRecent(),
		async:  newAsyncWriter(),
		state:  newState(t, time.Now()),
		passed: -1,
		gaveAt: time.Now(),
	}
	p.o.Store(&o)
	p.Withhold(o.Withheld)
	p.base, p.abort = context.WithCancel(context.Background())
	p.calls = p.base
	if o.Shared != nil {
		p.join(s)
	} else if err := p.load(); err != nil {
		p.abort()
		return nil, errors.Join(err, s.Close())
	}
	p.gate = newGate(o.Memory.Health, pause, func(open bool) { p.gateChanged(open, pause) })
	// All end when Shutdown closes stop.
	go p.run()
	p.worker.Go(p.recordAsync)
	p.worker.Go(p.writeUnkept)
	if p.team != nil {
		go p.lead()
	}
	return p, nil
}

func (p *Pipeline) opts() *Options { return p.o.Load() }

// Bounds are what may change while a Pipeline works.
type Bounds struct {
	MaxTurns   int
	MaxBytes   int
	MaxAge     time.Duration
	MaxBatch   int
	MaxChars   int
	Timeout    time.Duration
	StallAfter time.Duration
	Paused     bool // nothing is handed over
}

// Set changes the bounds, from the next turn and the next call on.
func (p *Pipeline) Set(b Bounds) {
	o := *p.opts()
	o.MaxTurns, o.MaxBytes, o.MaxAge, o.MaxBatch, o.MaxChars = b.MaxTurns, b.MaxBytes, b.MaxAge, b.MaxBatch, b.MaxChars
	o.Timeout, o.StallAfter = b.Timeout, b.StallAfter
	p.o.Store(&o)
	p.mu.Lock()
	p.state.retime(o.defaultTiming())
	p.paused = b.Paused
	p.mu.Unlock()
	if p.team != nil {
		p.team.spool.bound(o.MaxTurns, o.MaxBytes)
	}
	p.makeRoom()
	p.signal()
}

// load finds out what the spool holds. What an earlier process handed over and
// did not see arrive is looked for before it is sent again.
func (p *Pipeline) load() error {
	held, err := p.spool.Sizes(context.Background())
	if err != nil {
		return err
	}
	totals, err := p.spool.Totals()
	if err != nil {
		return err
	}
	instance, err := p.spool.Instance()
	if err != nil {
		return err
	}
	type doubt struct {
		group string
		u     *under
	}
	var doubts []doubt
	clock := graphiti.Now(p.opts().Memory.Clock())
	err = p.spool.InDoubt(func(group string, e ledger.Entry) {
		u, _ := p.track(e, clock)
		doubts = append(doubts, doubt{group, u})
	})
	if err != nil {
		return err
	}
	if !p.confirm {
		// A store that takes no harm from repetition is simply told again, and
		// acceptance that is taken for proof was not seen.
		for _, d := range doubts {
			if err := p.spool.Requeue(d.group, []ledger.Entry{d.u.entry}, ""); err != nil {
				return err
			}
		}
		doubts = nil
	}
	promoted, err := p.spool.Promoted(context.Background())
	if err != nil {
		return err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.held, p.totals, p.promoted = held, totals, promoted
	p.probeGroup = graphiti.CheckGroupPrefix + instance
	p.state.listed = totals.Verified > 0
	now := time.Now()
	for i, d := range doubts {
		p.state.inDoubt(d.group, d.u, i, len(doubts), now)
	}
	return p.spool.Groups(p.state.add)
}

// Promoted reports whether something was promoted into a group.
func (p *Pipeline) Promoted(group string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.promoted[group]
}

// Add stores a turn for its groups, less those that have it already. It is on
// disk when Add returns, and never waits for the memory.
//
// While the disk takes nothing, a bounded number of turns waits in memory.
func (p *Pipeline) Add(ctx context.Context, t ledger.Turn) error {
	return p.AddTurns(ctx, []ledger.Turn{t})
}

// AddTurns is Add for turns that belong together.
func (p *Pipeline) AddTurns(ctx context.Context, turns []ledger.Turn) error {
	err := p.behindUnkept()
	if err == nil {
		_, err = p.AddAll(ctx, turns)
	}
	if err = p.holdUnkept(turns, err); err != nil {
		p.release(turns) // the next request shows them, and they may be recorded then
	}
	return err
}

// AddAll is Add for many turns, in their order and with one wait for the disk.
// It returns how many of them some group did not have.
func (p *Pipeline) AddAll(ctx context.Context, turns []ledger.Turn) (kept int, err error) {
	if p.isClosed() {
		return 0, ErrStopped
	}
	return p.addAll(ctx, turns)
}

func (p *Pipeline) addAll(ctx context.Context, turns []ledger.Turn) (kept int, err error) {
	turns = p.wanted(turns)
	if len(turns) == 0 {
		return 0, nil
	}
	for i := range turns {
		p.redact(&turns[i])
		shorten(&turns[i], p.opts().MaxChars)
	}
	kept, err = p.keepAll(ctx, turns)
	if err == nil {
		p.keptAgain()
	}
	return kept, err
}

// noteRecorded remembers turns whose answers need not be read again.
func (p *Pipeline) noteRecorded(turns []ledger.Turn) {
	for i := range turns {
		if t := &turns[i]; !t.Open && !t.Earlier { // its end, or the turn itself, may still come
			p.recent.recorded(t.ID, t.Targets)
		}
	}
}

// keepAll stores turns as they are, and has them delivered.
func (p *Pipeline) keepAll(ctx context.Context, turns []ledger.Turn) (kept int, err error) {
	all, err := p.keep(ctx, turns)
	if err != nil {
		return 0, err
	}
	p.noteRecorded(turns)
	p.mu.Lock()
	for i := range turns {
		t, a := &turns[i], &all[i]
		if len(a.Groups) > 0 {
			kept++
		}
		for _, g := range a.Groups {
			if p.team == nil { // else who delivers finds them in the stream
				p.state.add(g, !t.Earlier)
			}
			if slices.Contains(graphiti.Kinds, t.Kind) {
				p.promoted[g] = true
			}
		}
		p.held.Pending = p.held.Pending.Plus(a.Size)
	}
	if p.team != nil {
		p.held = p.team.spool.held()
	}
	over := p.opts().over(p.held)
	p.mu.Unlock()
	if over != (ledger.Size{}) {
		p.makeRoom()
	}
	p.signal()
	return kept, nil
}

// wanted are the turns that a group may not have.
func (p *Pipeline) wanted(turns []ledger.Turn) []ledger.Turn {
	list := make([]ledger.Turn, 0, len(turns))
	for _, t := range turns {
		if len(t.Targets) > 0 && !p.recent.has(t.ID, t.Targets) {
			list = append(list, t)
		}
	}
	return list
}

// keep stores turns: where replicas share a spool, there, or here until it can
// be reached.
func (p *Pipeline) keep(ctx context.Context, turns []ledger.Turn) ([]ledger.Added, error) {
	all, err := p.spool.Add(ctx, turns, time.Now())
	if err != nil && p.team != nil && ctx.Err() == nil {
		return p.team.local.Add(ctx, turns, time.Now())
	}
	return all, err
}

// gateChanged is told when the memory is left alone, and when it is back.
func (p *Pipeline) gateChanged(open bool, pause time.Duration) {
	p.mu.Lock()
	now := time.Now()
	if open {
		p.state.pause(now.Add(pause))
		p.state.down = true
	} else {
		p.state.resume(now, func() time.Duration { return rand.N(time.Second) }) // #nosec G404 -- spreads load, no secret
	}
	p.mu.Unlock()
	p.signal()
}

// Shutdown takes no more turns, waits for the calls under way until ctx ends,
// and closes the spool. What is left is delivered by the next process.
func (p *Pipeline) Shutdown(ctx context.Context) error {
	p.mu.Lock()
	again := p.closed
	p.closed = true
	p.mu.Unlock()
	if !again {
		close(p.stop)
	}
	defer context.AfterFunc(ctx, p.abort)()
	p.worker.Wait()
	p.endUnkept()
	<-p.ended
	p.abort()
	if p.team != nil {
		<-p.team.ended
	}
	if again {
		return nil
	}
	p.mu.Lock()
	p.logDropsLocked(0)
	p.mu.Unlock()
	if p.team != nil {
		p.warnOfLocal()
		return p.team.local.Close()
	}
	return p.spool.Close()
}

func (p *Pipeline) signal() {
	select {
	case p.wake <- struct{}{}:
	default:
	}
}
