package capture

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/deliver"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/capture/redact"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// ErrStopped says that no more turns are taken.
var ErrStopped = errors.New("ingestion has stopped")

// Options configures a Pipeline. All fields but Direct, OnKept, OnStored, Shared
// and Told are required.
type Options struct {
	Path       string // of the spool's file
	Memory     Memory
	Direct     func(ctx context.Context, group string, messages []graphiti.Message) error // graphiti.Memory's; nil: all turns are delivered
	MaxTurns   int                                                                        // in the spool; one for each group counts as one
	MaxBytes   int
	MaxAge     time.Duration
	MaxBatch   int // turns in one call to a memory elsewhere
	MaxChars   int // of one message
	Timeout    time.Duration
	Verify     bool                                  // whether acceptance is not taken for proof
	StallAfter time.Duration                         // without a sign of work
	Withheld   []string                              // groups to which nothing is handed over, until Withhold is called
	Shared     *Shared                               // what replicas share; nil: nothing
	Told       func(deliver.Delivery)                // is called for each delivery of a turn that has a Trace; may be nil
	OnStored   func(group string)                    // called when a group holds something new
	OnKept     func(t *ledger.Turn, groups []string) // is called when a turn is on disk, with the groups that did not have it before
	Log        *slog.Logger
}

// Memory takes what is to be remembered, and says how delivery may treat it.
type Memory interface {
	deliver.Memory

	// Durable reports whether a Write that returned nil proves that the
	// messages are kept. It must then also take no harm from the same messages
	// being written again.
	Durable() bool

	// Apart reports whether groups are worked off by themselves.
	Apart() bool
}

// Pipeline keeps turns until the memory is known to hold them. It is safe for
// concurrent use.
type Pipeline struct {
	o         atomic.Pointer[Options]
	spool     ledger.Store
	disk      *ledger.Ledger // where this process keeps turns: the same, unless it is shared
	loop      *deliver.Loop
	secrets   *redact.Redactor
	redacted  atomic.Int64
	evicted   atomic.Int64 // dropped by what bounds the spool
	stop      chan struct{}
	ended     chan struct{} // nothing is delivered any more
	recent    recent
	inTurn    inTurn
	histories histories
	leftOut   atomic.Int64 // turns of histories
	worker    sync.WaitGroup
	base      context.Context // of all that is done
	abort     context.CancelFunc
	unkept    unkept     // turns that wait for the disk
	replicas  *replicas  // nil: this process is alone
	cutting   sync.Mutex // one cut at a time: two would take the same excess twice

	mu       sync.Mutex // guards what follows
	closed   bool
	held     ledger.Sizes
	totals   ledger.Totals
	drops    map[string]*drops // that were logged, by their reason
	promoted map[string]bool   // groups into which something was
}

// Open opens the spool and begins to deliver what it holds.
func Open(o Options) (*Pipeline, error) {
	return open(o, o.timing(), deliver.OpenFor)
}

func open(o Options, t deliver.Timing, openFor time.Duration) (*Pipeline, error) {
	s, err := ledger.Open(o.Path)
	if err != nil {
		return nil, err
	}
	if o.Memory.Durable() {
		s.Unhurried()
	}
	redactor, err := redact.New()
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	p := &Pipeline{
		spool: s, disk: s, secrets: redactor, stop: make(chan struct{}), ended: make(chan struct{}),
		recent:    newRecent(),
		histories: newHistories(),
		inTurn:    inTurn{groups: make(map[string]*writing)},
		unkept:    unkept{wake: make(chan struct{}, 1)}, // more than one says nothing new
	}
	p.o.Store(&o)
	p.base, p.abort = context.WithCancel(context.Background())
	p.loop = deliver.New(deliver.Options{
		Ledger: queue{p}, Memory: o.Memory, Durable: o.Memory.Durable(), Apart: o.Memory.Apart(), Verify: o.Verify,
		Timing: t, Timeout: o.Timeout, OpenFor: openFor,
		Told: o.Told, OnStored: o.OnStored, Redact: p.Redacted, Log: o.Log,
	})
	p.Withhold(o.Withheld)
	if o.Shared != nil {
		p.join(s)
	} else if err := p.deliver(p.base); err != nil {
		p.abort()
		return nil, errors.Join(err, s.Close())
	}
	// All end when Shutdown closes stop.
	p.worker.Go(p.upkeep)
	p.worker.Go(p.recordHistories)
	p.worker.Go(p.writeUnkept)
	if p.replicas != nil {
		go p.runElection()
	}
	return p, nil
}

// What goes in one call to a memory that is a file: it waits for the disk once
// for each call, and the more turns are written at once the fewer pages are.
const (
	durableBatch = 1024     // turns
	durableChars = 16 << 20 // characters of them, if all were as long as they may be
)

func (o *Options) timing() deliver.Timing {
	batch := o.MaxBatch
	if o.Memory.Durable() {
		batch = max(batch, min(durableBatch, durableChars/(2*max(1, o.MaxChars))))
	}
	return deliver.DefaultTiming(batch, o.StallAfter)
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
	p.loop.Set(o.timing(), o.Timeout, b.Paused)
	if p.replicas != nil {
		p.replicas.spool.Bound(o.MaxTurns, o.MaxBytes)
	}
	p.makeRoom()
}

// deliver finds out what the spool holds, and begins to deliver it. It goes on
// until Shutdown closes stop, or ctx ends.
func (p *Pipeline) deliver(ctx context.Context) error {
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
	promoted, err := p.spool.Promoted(context.Background())
	if err != nil {
		return err
	}
	p.mu.Lock()
	p.held, p.totals, p.promoted = held, totals, promoted
	p.mu.Unlock()
	return p.loop.Start(ctx, p.stop, deliver.Known{Instance: instance, Listed: totals.Verified > 0})
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
		_, err = p.addNew(ctx, turns, p.noteSoon)
	}
	if err = p.holdUnkept(turns, err); err != nil {
		p.release(turns) // the next request shows them, and they may be recorded then
	}
	return err
}

// AddAll is Add for many turns, in their order and with one wait for the disk.
// It returns how many of them some group did not have; of those that come from
// an export, how many of their sides.
func (p *Pipeline) AddAll(ctx context.Context, turns []ledger.Turn) (kept int, err error) {
	return p.addNew(ctx, turns, p.noteNow)
}

func (p *Pipeline) addNew(ctx context.Context, turns []ledger.Turn, note noteDelivered) (kept int, err error) {
	if p.isClosed() {
		return 0, ErrStopped
	}
	rest, kept := p.addDirect(ctx, turns, note)
	more, err := p.addAll(ctx, rest)
	return kept + more, err
}

func (p *Pipeline) addAll(ctx context.Context, turns []ledger.Turn) (kept int, err error) {
	if turns = p.prepare(turns); len(turns) == 0 {
		return 0, nil
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
		if t := &turns[i]; !t.Open && !t.Backfill { // its end, or the turn itself, may still come
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
	kept = p.noteKept(turns, all)
	p.mu.Lock()
	for i := range turns {
		for _, g := range all[i].Groups {
			if p.replicas == nil { // else who delivers finds them in the stream
				p.loop.Wake(g, !turns[i].Backfill)
			}
		}
		p.held.Pending = p.held.Pending.Plus(all[i].Size)
	}
	if p.replicas != nil {
		p.held = p.replicas.spool.Held()
	}
	over := p.opts().over(p.held)
	p.mu.Unlock()
	if over != (ledger.Size{}) {
		p.makeRoom()
	}
	return kept, nil
}

// noteKept says that turns are on disk, each for the groups that did not have it
// before, and returns how many some group did not have.
func (p *Pipeline) noteKept(turns []ledger.Turn, all []ledger.Added) (kept int) {
	p.noteRecorded(turns)
	if p.opts().OnKept != nil {
		for i := range turns {
			p.opts().OnKept(&turns[i], all[i].Groups)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range turns {
		t, a := &turns[i], &all[i]
		if len(a.Groups) > 0 {
			kept += max(1, len(t.Restored))
		}
		if slices.Contains(graphiti.Kinds, t.Kind) {
			for _, g := range a.Groups {
				p.promoted[g] = true
			}
		}
	}
	return kept
}

// prepare returns the turns that a group may not have, as they are stored: without
// credentials, and no longer than they are written to the memory.
func (p *Pipeline) prepare(turns []ledger.Turn) []ledger.Turn {
	list := make([]ledger.Turn, 0, len(turns))
	for _, t := range turns {
		if len(t.Targets) > 0 && !p.recent.has(t.ID, t.Targets) {
			p.redact(&t)
			shorten(&t, p.opts().MaxChars)
			list = append(list, t)
		}
	}
	return list
}

// keep stores turns: where replicas share a spool, there, or here until it can
// be reached.
func (p *Pipeline) keep(ctx context.Context, turns []ledger.Turn) ([]ledger.Added, error) {
	all, err := p.spool.Add(ctx, turns, time.Now())
	if err != nil && p.replicas != nil && ctx.Err() == nil {
		return p.replicas.local.Add(ctx, turns, time.Now())
	}
	return all, err
}

// Shutdown takes no more turns, waits for the calls under way until ctx ends,
// and closes the spool. What is left is delivered by the next process, but for
// what a LostError counts.
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
	lost := p.endUnkept()
	p.loop.Wait()
	if !again {
		close(p.ended)
	}
	p.abort()
	if p.replicas != nil {
		<-p.replicas.ended
	}
	if again {
		return nil
	}
	p.mu.Lock()
	p.logDropsLocked(0)
	p.mu.Unlock()
	if p.replicas != nil {
		p.warnOfLocal()
		return errors.Join(lost, p.replicas.local.Close())
	}
	return errors.Join(lost, p.spool.Close())
}
