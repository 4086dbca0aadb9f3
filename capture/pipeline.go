package capture

import (
	"context"
	"errors"
	"log/slog"
	"maps"
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

	Verify bool  // a copy counts as delivered only if Graph shows it
	Lease  Lease // nil if no other process uses the ledger

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

func (e Events) withDefaults() Events {
	if e.OnKept == nil {
		e.OnKept = func(*ledger.Turn, []string) {}
	}
	if e.OnDelivered == nil {
		e.OnDelivered = func(deliver.Delivery) {}
	}
	return e
}

// settings holds the current bounds.
type settings struct{ now atomic.Pointer[Bounds] }

func (s *settings) opts() *Bounds { return s.now.Load() }

// Queue holds the turns that wait to be copied to Graphiti. It is empty without Graphiti.
type Queue interface {
	// Turns returns waiting and dead turns, oldest first, and the number of all matching
	// turns.
	Turns(ctx context.Context, o ledger.ListOptions) (list []ledger.Item, all int, err error)

	// Retry delivers dead turns again: those with the numbers, or all if numbers is empty.
	// It returns their number.
	Retry(numbers []int64) (int, error)

	// Drop deletes dead turns permanently: those with the numbers, or all if numbers is
	// empty. It returns their number.
	Drop(numbers []int64) (int, error)

	// Send copies the turns since a time that Graphiti never got, after all others. It returns
	// their number.
	Send(since time.Time) (int, error)

	// Import stores, in the background, the messages of an owner's groups that only Graphiti
	// has, with their facts. It does nothing for groups that were imported recently.
	Import(owner ledger.Turn)

	// Withdrawn waits until the forgotten parts of a group are deleted in Graphiti, or until ctx
	// ends, or unless patient until an attempt fails. It returns the number of
	// messages, sessions or groups that may be left, and the error of the last attempt.
	Withdrawn(ctx context.Context, group string, patient bool) (left int, err error)
}

// Pipeline records turns for a memory. It is safe for concurrent use.
type Pipeline struct {
	fates
	Queue
	*ownFile
	*settings
	onKept    func(t *ledger.Turn, groups []string)
	log       *slog.Logger
	redacted  atomic.Int64
	shortened atomic.Int64
	recent    recent
	waiting   waiting
	journal   *journal // nil for a ledger in a file
	doubts    doubts
	life
}

// life controls the lifetime of a Pipeline.
type life struct {
	stop   chan struct{}   // closed by Shutdown
	base   context.Context // context of background work for histories
	abort  context.CancelFunc
	worker sync.WaitGroup
	ending sync.Once
}

// Open opens the record of turns and starts to deliver waiting ones.
func Open(o Options) (*Pipeline, error) {
	return open(o, o.timing())
}

func open(o Options, t deliver.Timing) (*Pipeline, error) {
	o.Events = o.withDefaults()
	p := &Pipeline{
		settings: &settings{}, onKept: o.OnKept, log: o.Log, recent: newRecent(), waiting: newWaiting(), doubts: newDoubts(), fates: fates{was: graphiti.FateHeld},
		life: life{stop: make(chan struct{})},
	}
	p.now.Store(&o.Bounds)
	if o.Journal != "" {
		journal, err := openJournal(o.Journal)
		if err != nil {
			return nil, err
		}
		p.journal = journal
	}
	k, err := openOwnFile(p.settings, &o, p.stop)
	if err != nil {
		p.journal.close()
		return nil, err
	}
	p.ownFile, p.Queue, p.doubts.disk = k, noQueue{}, k.Ledger
	if o.Graph != nil {
		if k.out, err = openOutbox(k, &o, p.stop, p.Redacted, t); err != nil {
			return nil, err
		}
		p.Queue = k.out
	}
	p.base, p.abort = context.WithCancel(context.Background())
	// Ends when Shutdown closes stop.
	p.worker.Go(p.recordWaiting)
	p.waiting.signal() // the journal may have turns
	p.doubts.load(p.log)
	// Ends when Shutdown closes stop.
	p.worker.Go(p.runDoubts)
	return p, nil
}

// Set changes the bounds for later turns and calls. paused suspends delivery to a remote
// memory.
func (p *Pipeline) Set(b Bounds, paused bool) {
	p.now.Store(&b)
	if p.out != nil {
		p.out.apply(paused)
	}
}

// Shutdown rejects further turns, waits for running calls until ctx is done, and closes the
// record. The next process delivers the remaining turns, except those counted by a
// LostError.
func (p *Pipeline) Shutdown(ctx context.Context) (err error) {
	defer context.AfterFunc(ctx, p.abort)()
	p.ending.Do(func() {
		close(p.stop)
		p.worker.Wait()
		_ = p.flush() // final attempt; the rest is lost
		lost := p.waiting.end(p.log)
		err = errors.Join(lost, p.close(ctx))
		p.journal.close()
		p.abort()
	})
	return err
}

func (p *Pipeline) isClosed() bool {
	select {
	case <-p.stop:
		return true
	default:
		return false
	}
}

// promoted is the set of groups with promoted texts.
type promoted struct {
	mu     sync.Mutex // protects groups
	groups map[string]bool
}

// add adds groups that this or other processes have promoted to.
func (p *promoted) add(groups map[string]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	maps.Copy(p.groups, groups)
}

// note adds the groups of new promoted texts.
func (p *promoted) note(turns []ledger.Turn, all []ledger.Added) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range turns {
		if slices.Contains(graphiti.Kinds, turns[i].Kind) {
			for _, g := range all[i].Groups {
				p.groups[g] = true
			}
		}
	}
}

// Promoted implements Groups.
func (p *promoted) Promoted(group string) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.groups[group]
}
