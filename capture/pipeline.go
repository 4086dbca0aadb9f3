package capture

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
	"github.com/graphiti-proxy/graphiti-proxy/capture/deliver"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/capture/redact"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// ErrStopped says that no more turns are taken.
var ErrStopped = errors.New("ingestion has stopped")

// Options configures a Pipeline. All fields but Ledger, OnKept, OnStored, Shared
// and OnDelivered are required; Path, Memory and what bounds delivery where Ledger is nil.
type Options struct {
	// Ledger returns the ledger in the memory's own file, whose turns are messages
	// as say makes them. nil: the memory is elsewhere.
	Ledger func(say ledger.Say) *ledger.Ledger

	Path        string // of the spool's file
	Memory      deliver.Memory
	Apart       bool // the memory works off each group by itself
	MaxTurns    int  // in the spool; one for each group counts as one
	MaxBytes    int
	MaxAge      time.Duration
	MaxBatch    int // turns in one call
	MaxChars    int // of one message
	Episodes    Episodes
	Timeout     time.Duration
	Verify      bool                                  // whether acceptance is not taken for proof
	StallAfter  time.Duration                         // without a sign of work
	RecentFor   time.Duration                         // how long a turn is found after it was delivered
	Withheld    []string                              // groups to which nothing is handed over, until Withhold is called
	Shared      *Shared                               // what replicas share; nil: nothing
	OnDelivered func(deliver.Delivery)                // is called for each delivery of a turn that has a Trace; may be nil
	OnStored    func(group string)                    // called when a group holds something new
	OnKept      func(t *ledger.Turn, groups []string) // is called when a turn is on disk, with the groups that did not have it before
	Log         *slog.Logger
}

// settings are those that count now.
type settings struct{ o atomic.Pointer[Options] }

func (s *settings) opts() *Options { return s.o.Load() }

// record is where turns are kept for good: the ledger of a memory that is a file of
// ours, or the outbox of one that is elsewhere.
type record interface {
	// Add stores turns for those of their groups that have not had them. They are
	// on disk when it returns.
	Add(ctx context.Context, turns []ledger.Turn) ([]ledger.Added, error)

	// Whole says of each turn whether all of its groups have all of it.
	Whole(ctx context.Context, turns []ledger.Turn) ([]bool, error)

	CutOff(ctx context.Context, t *ledger.Turn) error
	Forget(ctx context.Context, part ledger.Part, generation int64) error

	apply(paused bool) // the settings, which are new
	status(s *QueueStatus)
	close(ctx context.Context) error
}

// Queue is what waits for the memory: nothing where that is a file of ours.
type Queue interface {
	// Turns lists turns that wait or are dead, the oldest first, and says how many
	// there are in all.
	Turns(ctx context.Context, o ledger.ListOptions) (list []ledger.Item, all int, err error)

	// Waiting calls f for each turn of a part that waits or is dead, with what would
	// be written of it.
	Waiting(ctx context.Context, part ledger.Part, f func(graphiti.Message) error) error

	// Retry has dead turns delivered again: those of the numbers, or all when
	// there are none. It returns how many.
	Retry(numbers []int64) (int, error)

	// Drop removes dead turns for good: those of the numbers, or all when there
	// are none. It returns how many.
	Drop(numbers []int64) (int, error)

	// Recent finds what waits, or left the queue a short while ago: up to max messages
	// of people in a group, the best first.
	Recent(ctx context.Context, group, query string, max int) ([]graphiti.Fact, error)

	// Withhold has nothing handed over to some groups, and to no others, until it is
	// called again. Their turns wait.
	Withhold(groups []string)
}

// Groups is what is known of the groups that were written to.
type Groups interface {
	// Owned lists them, or those of one owner.
	Owned(ctx context.Context, owner string) ([]ledger.Owned, error)

	// SessionGroups lists those that hold recent turns of a session.
	SessionGroups(ctx context.Context, session string) ([]ledger.Owned, error)

	// Promoted reports whether something was promoted into a group.
	Promoted(group string) bool

	// Raise applies the generations of forgotten scopes, and returns the newest
	// generation that is known here.
	Raise(floors map[string]int64) (newest int64, err error)

	// Fault is what is known to be wrong with the file of this process; nil:
	// nothing. Check looks.
	Fault() *sqlite.Fault
	Check() *sqlite.Fault
}

// Pipeline takes turns and has them recorded. It is safe for concurrent use.
type Pipeline struct {
	Queue
	Groups
	*settings
	record    record
	secrets   *redact.Redactor
	redacted  atomic.Int64
	stop      chan struct{}
	recent    recent
	histories histories
	leftOut   atomic.Int64 // turns of histories
	worker    sync.WaitGroup
	base      context.Context // of all that is done
	abort     context.CancelFunc
	unkept    unkept // turns that wait for the disk
	ending    sync.Once
}

// Open opens the record of turns, and begins to deliver what waits in it.
func Open(o Options) (*Pipeline, error) {
	return open(o, o.timing(), deliver.OpenFor)
}

func open(o Options, t deliver.Timing, openFor time.Duration) (*Pipeline, error) {
	redactor, err := redact.New()
	if err != nil {
		return nil, err
	}
	p := &Pipeline{
		settings: &settings{}, secrets: redactor, stop: make(chan struct{}),
		recent:    newRecent(),
		histories: newHistories(),
		unkept:    unkept{wake: make(chan struct{}, 1)}, // more than one says nothing new
	}
	p.o.Store(&o)
	if o.Ledger != nil {
		k, err := openOwnFile(p.settings, p.stop)
		if err != nil {
			return nil, err
		}
		p.record, p.Queue, p.Groups = k, noQueue{}, k
	} else {
		b, err := openOutbox(p.settings, p.stop, p.Redacted, t, openFor)
		if err != nil {
			return nil, err
		}
		p.record, p.Queue, p.Groups = b, b, b
	}
	p.base, p.abort = context.WithCancel(context.Background())
	// All end when Shutdown closes stop.
	p.worker.Go(p.recordHistories)
	p.worker.Go(p.writeUnkept)
	return p, nil
}

// Bounds are what may change while a Pipeline works.
type Bounds struct {
	MaxTurns   int
	MaxBytes   int
	MaxAge     time.Duration
	MaxBatch   int
	MaxChars   int
	Episodes   Episodes
	Timeout    time.Duration
	StallAfter time.Duration
	RecentFor  time.Duration
	Paused     bool // nothing is handed over
}

// Set changes the bounds, from the next turn and the next call on.
func (p *Pipeline) Set(b Bounds) {
	o := *p.opts()
	o.MaxTurns, o.MaxBytes, o.MaxAge, o.MaxBatch, o.MaxChars, o.Episodes = b.MaxTurns, b.MaxBytes, b.MaxAge, b.MaxBatch, b.MaxChars, b.Episodes
	o.Timeout, o.StallAfter, o.RecentFor = b.Timeout, b.StallAfter, b.RecentFor
	p.o.Store(&o)
	p.record.apply(b.Paused)
}

// Add stores a turn for its groups, less those that have it already. It is on
// disk when Add returns, and never waits for a memory that is elsewhere.
//
// While the disk takes nothing, a bounded number of turns waits in RAM.
func (p *Pipeline) Add(ctx context.Context, t ledger.Turn) error {
	return p.AddTurns(ctx, []ledger.Turn{t})
}

// AddTurns is Add for turns that belong together.
func (p *Pipeline) AddTurns(ctx context.Context, turns []ledger.Turn) error {
	fresh := p.prepare(turns)
	err := p.behindUnkept()
	if err == nil {
		_, err = p.keepAll(ctx, fresh)
	}
	if err = p.holdUnkept(fresh, err); err != nil {
		p.release(turns) // the next request shows them, and they may be recorded then
	}
	return err
}

// AddAll is Add for many turns, in their order and with one wait for the disk.
// It returns how many of them some group did not have; of those that come from
// an export, how many of their sides.
func (p *Pipeline) AddAll(ctx context.Context, turns []ledger.Turn) (kept int, err error) {
	if p.isClosed() {
		return 0, ErrStopped
	}
	return p.keepAll(ctx, p.prepare(turns))
}

// noteRecorded remembers turns whose answers need not be read again.
func (p *Pipeline) noteRecorded(turns []ledger.Turn) {
	for i := range turns {
		if t := &turns[i]; !t.Open && !t.Backfill { // its end, or the turn itself, may still come
			p.recent.recorded(t.ID, t.Targets)
		}
	}
}

// keepAll stores turns as they are, and returns how many some group did not have.
func (p *Pipeline) keepAll(ctx context.Context, turns []ledger.Turn) (kept int, err error) {
	if len(turns) == 0 {
		return 0, nil
	}
	all, err := p.record.Add(ctx, turns)
	if err != nil {
		return 0, err
	}
	p.keptAgain()
	p.noteRecorded(turns)
	for i := range turns {
		if p.opts().OnKept != nil {
			p.opts().OnKept(&turns[i], all[i].Groups)
		}
		if len(all[i].Groups) > 0 {
			kept += max(1, len(turns[i].Restored))
		}
	}
	return kept, nil
}

// prepare returns the turns that a group may not have, as they are recorded.
func (p *Pipeline) prepare(turns []ledger.Turn) []ledger.Turn {
	list := make([]ledger.Turn, 0, len(turns))
	for _, t := range turns {
		if len(t.Targets) > 0 && !p.recent.has(t.ID, t.Targets) {
			p.clean(&t)
			list = append(list, t)
		}
	}
	return list
}

// Shutdown takes no more turns, waits for the calls under way until ctx ends,
// and closes the record. What is left is delivered by the next process, but for
// what a LostError counts.
func (p *Pipeline) Shutdown(ctx context.Context) (err error) {
	defer context.AfterFunc(ctx, p.abort)()
	p.ending.Do(func() {
		close(p.stop)
		p.worker.Wait()
		lost := p.endUnkept()
		err = errors.Join(lost, p.record.close(ctx))
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

// promoted are the groups into which something was promoted.
type promoted struct {
	mu     sync.Mutex // guards groups
	groups map[string]bool
}

func (p *promoted) set(groups map[string]bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.groups = groups
}

// note notes turns that were added.
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
