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
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// ErrStopped means that the Pipeline accepts no more turns.
var ErrStopped = errors.New("ingestion has stopped")

// Options configures a Pipeline.
type Options struct {
	Bounds
	Destination
	Events
	Log *slog.Logger
}

// Bounds are the settings that Set can change at run time.
type Bounds struct {
	MaxChars   int // per message
	Episodes   Episodes
	Timeout    time.Duration
	StallAfter time.Duration // time without progress
	Retain     ledger.Retention
	Quotas     Quotas

	// Named returns the name of an owner in the configuration. The memory of each group then begins with
	// a note on its owner. Nil stores no notes.
	Named func(owner string) (name string, ok bool)
}

// Destination describes the store of turns.
type Destination struct {
	// Ledger returns the ledger in the memory's file; say makes the messages of its turns.
	Ledger func(say ledger.Say) *ledger.Ledger

	Graph deliver.Backend // receives copies; nil disables them, and the fields below
	Facts FactStore       // receives facts of Graph; nil leaves them there
	Apart bool            // Graph processes each group separately
	// Disk returns the used bytes of the databases, for a quota.
	Disk func(context.Context) (int64, error)

	Lease Lease // nil if no other process uses the ledger

	// States reports whether a text may be a statement: Graphiti gets no copy of a turn in which the
	// person states nothing. Nil copies all.
	States func(ctx context.Context, text string) bool

	// Journal is the file for turns during an outage of the ledger's database, or "" if that is a
	// file.
	Journal string
}

// Events holds optional callbacks.
type Events struct {
	OnKept      func(t *ledger.Turn, groups []string) // after t is on disk, with the groups that lacked it
	OnDelivered func(deliver.Delivery)                // for turns with a Trace
}

// settings holds the current bounds.
type settings struct{ now atomic.Pointer[Bounds] }

func (s *settings) opts() *Bounds { return s.now.Load() }

// Pipeline records turns for a memory. It is safe for concurrent use.
type Pipeline struct {
	fates
	*ledger.Ledger
	Events
	settings
	log       *slog.Logger
	disk      func(context.Context) (int64, error)
	redacted  atomic.Int64
	shortened atomic.Int64
	recent    recent
	waiting   waiting
	journal   *journal // nil for a ledger in a file
	doubts    doubts
	promoted  sync.Map // groups with promoted texts
	usage     usage
	expired   time.Time // last deletion of old messages
	out       *outbox   // copies turns to Graphiti; nil without Graphiti

	stopped context.Context // ends with Shutdown
	stop    context.CancelFunc
	base    context.Context // of calls that Shutdown waits for
	abort   context.CancelFunc
	worker  sync.WaitGroup
	ending  sync.Once
}

// Open opens the record of turns and starts to deliver waiting ones.
func Open(o Options) (p *Pipeline, err error) {
	p = &Pipeline{
		Events: o.Events, log: o.Log, disk: o.Disk, recent: newRecent(), waiting: waiting{wake: make(chan struct{}, 1)}, doubts: doubts{wake: make(chan struct{}, 1), passes: make(chan chan struct{})}, fates: fates{was: graphiti.FateHeld},
	}
	p.now.Store(&o.Bounds)
	p.stopped, p.stop = context.WithCancel(context.Background())
	p.base, p.abort = context.WithCancel(context.Background())
	if o.Journal != "" {
		if p.journal, err = openJournal(o.Journal); err != nil {
			return nil, err
		}
	}
	p.Ledger = o.Ledger(func(t *ledger.Turn, scope graphiti.Scope) []graphiti.Row {
		return messagesOf(t, scope, p.opts().MaxChars, time.Now())
	})
	p.doubts.disk = p.Ledger
	err = p.readPromoted()
	if err == nil && o.Graph != nil {
		p.out, err = p.openOutbox(&o)
	}
	if err != nil {
		p.journal.close()
		return nil, err
	}
	p.doubts.load(p.log)
	p.waiting.signal() // the journal may have turns
	for _, run := range []func(){p.recordWaiting, p.runDoubts, p.runUpkeep} {
		p.worker.Go(run) // ends with Shutdown
	}
	if p.out != nil {
		p.out.pause(false)
	}
	return p, nil
}

// Set changes the bounds for later turns and calls. paused suspends delivery to a remote
// memory.
func (p *Pipeline) Set(b Bounds, paused bool) {
	p.now.Store(&b)
	if p.out != nil {
		p.out.pause(paused)
	}
}

// Shutdown rejects further turns, waits for running calls until ctx is done, and ends the
// work on the record. The next process delivers the remaining turns, except those counted by a
// LostError.
func (p *Pipeline) Shutdown(ctx context.Context) (err error) {
	defer context.AfterFunc(ctx, p.abort)()
	p.ending.Do(func() {
		p.stop()
		p.worker.Wait()
		if p.out != nil {
			p.out.pause(true)
		}
		_ = p.flush() // final attempt; the rest is lost
		err = p.waiting.end(p.log)
		p.abort()
		if p.out != nil {
			if n, err := p.Counts(context.Background()); err == nil && n.Pending > 0 {
				p.log.Info("undelivered turns stay in the queue, and are delivered after the next start", "turns", n.Pending)
			}
		}
		p.prune(time.Now()) // adds the newest turns to the totals
		p.journal.close()
	})
	return err
}

func (p *Pipeline) isClosed() bool { return p.stopped.Err() != nil }

// store stores each turn for those of its groups that lack it. The turns are on disk when it
// returns.
func (p *Pipeline) store(ctx context.Context, turns []ledger.Turn) ([]ledger.Added, error) {
	began := time.Now()
	if p.out != nil {
		p.out.mark(ctx, turns)
		defer p.out.loop.Wake()
	}
	all, err := p.add(ctx, turns, p.Ledger.Add)
	if err != nil || p.out != nil {
		return all, err
	}
	for i := range turns {
		for _, g := range all[i].Groups {
			if t := turns[i].Trace; t != "" && p.OnDelivered != nil {
				p.OnDelivered(deliver.Delivery{Trace: t, Group: g, Began: began, Verified: true})
			}
		}
	}
	return all, nil
}

// add stores turns by a method of the ledger.
func (p *Pipeline) add(ctx context.Context, turns []ledger.Turn, store func(context.Context, []ledger.Turn, time.Time) ([]ledger.Added, error)) ([]ledger.Added, error) {
	p.usage.storing.RLock()
	defer p.usage.storing.RUnlock()
	all, err := store(ctx, turns, time.Now())
	if err != nil {
		return nil, err
	}
	for i := range turns {
		if slices.Contains(graphiti.Kinds, turns[i].Kind) {
			for _, g := range all[i].Groups {
				p.promoted.Store(g, true)
			}
		}
	}
	p.usage.added(turns, all)
	return all, nil
}

// readPromoted reads the groups with promoted texts: other replicas promote, too.
func (p *Pipeline) readPromoted() error {
	groups, err := p.Ledger.Promoted(context.Background())
	for group := range groups {
		p.promoted.Store(group, true)
	}
	return err
}

// Promoted reports whether a group has promoted texts.
func (p *Pipeline) Promoted(group string) bool {
	_, ok := p.promoted.Load(group)
	return ok
}
