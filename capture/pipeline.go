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

// ErrStopped says that the Pipeline takes no more turns.
var ErrStopped = errors.New("ingestion has stopped")

// Options says where turns are recorded, within which bounds, and which functions are
// called then.
type Options struct {
	Bounds
	Place
	Events
	Log *slog.Logger
}

// Bounds are what may change while a Pipeline works.
type Bounds struct {
	MaxTurns   int // in the spool; a turn counts once for each of its groups
	MaxBytes   int
	MaxAge     time.Duration
	MaxBatch   int // turns in one call
	MaxChars   int // of one message
	Episodes   Episodes
	Timeout    time.Duration
	StallAfter time.Duration // without a sign of work
	RecentFor  time.Duration // how long Recent finds a turn after it has left the queue
}

// Place is where turns are recorded.
type Place struct {
	// Ledger returns the ledger in the memory's own file; say makes messages of its
	// turns. nil: the memory is elsewhere, and the fields that follow describe it.
	Ledger func(say ledger.Say) *ledger.Ledger

	Path     string // of the spool's file
	Memory   deliver.Memory
	Apart    bool     // the memory works off each group by itself
	Verify   bool     // a turn is delivered only when it was seen in the memory
	Withheld []string // groups to which nothing is handed over, until Withhold is called
	Shared   *Shared  // what replicas share; nil: nothing
}

// Events are functions that are called when something happened to turns. They may be
// nil.
type Events struct {
	OnKept      func(t *ledger.Turn, groups []string) // a turn is on disk; the groups did not have it before
	OnStored    func(group string)                    // a group of the memory holds something new
	OnDelivered func(deliver.Delivery)                // of a turn that has a Trace
}

func (e Events) orNothing() Events {
	if e.OnKept == nil {
		e.OnKept = func(*ledger.Turn, []string) {}
	}
	if e.OnStored == nil {
		e.OnStored = func(string) {}
	}
	if e.OnDelivered == nil {
		e.OnDelivered = func(deliver.Delivery) {}
	}
	return e
}

// settings are the bounds in force.
type settings struct{ now atomic.Pointer[Bounds] }

func (s *settings) opts() *Bounds { return s.now.Load() }

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

// Queue holds the turns that wait for the memory. It is empty where the memory is a file
// of ours.
type Queue interface {
	// Turns lists turns that wait or are dead, the oldest first, and says how many
	// there are in all.
	Turns(ctx context.Context, o ledger.ListOptions) (list []ledger.Item, all int, err error)

	// Waiting calls f for each turn of a part that waits or is dead, with what would
	// be written of it.
	Waiting(ctx context.Context, part ledger.Part, f func(graphiti.Message) error) error

	// Retry delivers dead turns again: those with the numbers, or all if there are no
	// numbers. It returns how many they are.
	Retry(numbers []int64) (int, error)

	// Drop deletes dead turns for good: those with the numbers, or all if there are no
	// numbers. It returns how many they are.
	Drop(numbers []int64) (int, error)

	// Recent finds what waits, or left the queue a short while ago: up to max messages
	// of people in a group, the best first.
	Recent(ctx context.Context, group, query string, max int) ([]graphiti.Fact, error)

	// Withhold sets the groups to which nothing is sent, in place of those of the last
	// call. Their turns wait, and Recent does not find them. missed says that this process
	// may have missed the forget of some other group.
	Withhold(groups []string, missed bool)
}

// Groups is what is known of the groups that were written to.
type Groups interface {
	// Owned lists them, or those of one owner.
	Owned(ctx context.Context, owner string) ([]ledger.Owned, error)

	// SessionGroups lists those that hold recent turns of a session.
	SessionGroups(ctx context.Context, session string) ([]ledger.Owned, error)

	// Promoted reports whether something was promoted into a group.
	Promoted(group string) bool

	// Raise notes the generations of forgotten scopes, and returns the newest generation
	// that is known here.
	Raise(floors map[string]int64) (newest int64, err error)

	// Fault is what is known to be wrong with the file of this process; nil:
	// nothing. Check looks.
	Fault() *sqlite.Fault
	Check() *sqlite.Fault
}

// Pipeline is the recorder that stands before a memory. It is safe for concurrent
// use.
type Pipeline struct {
	Queue
	Groups
	*settings
	record    record
	onKept    func(t *ledger.Turn, groups []string)
	log       *slog.Logger
	secrets   *redact.Redactor
	redacted  atomic.Int64
	shortened atomic.Int64
	recent    recent
	waiting   waiting
	life
}

// life is how long a Pipeline works.
type life struct {
	stop   chan struct{}   // closed when no more turns are taken
	base   context.Context // of what is done for histories
	abort  context.CancelFunc
	worker sync.WaitGroup
	ending sync.Once
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
	o.Events = o.orNothing()
	p := &Pipeline{
		settings: &settings{}, onKept: o.OnKept, log: o.Log, secrets: redactor, recent: newRecent(), waiting: newWaiting(),
		life: life{stop: make(chan struct{})},
	}
	p.now.Store(&o.Bounds)
	if o.Ledger != nil {
		k, err := openOwnFile(p.settings, &o, p.stop)
		if err != nil {
			return nil, err
		}
		p.record, p.Queue, p.Groups = k, noQueue{}, k
	} else {
		b, err := openOutbox(p.settings, &o, p.stop, p.Redacted, t, openFor)
		if err != nil {
			return nil, err
		}
		p.record, p.Queue, p.Groups = b, b, b
	}
	p.base, p.abort = context.WithCancel(context.Background())
	// Ends when Shutdown closes stop.
	p.worker.Go(p.recordWaiting)
	return p, nil
}

// Set changes the bounds from the next turn and the next call on. While paused is set,
// nothing is sent to a remote memory.
func (p *Pipeline) Set(b Bounds, paused bool) {
	p.now.Store(&b)
	p.record.apply(paused)
}

// Shutdown takes no more turns, waits for the calls under way until ctx ends, and closes
// the record. The next process delivers what is left, except the turns that a LostError
// counts.
func (p *Pipeline) Shutdown(ctx context.Context) (err error) {
	defer context.AfterFunc(ctx, p.abort)()
	p.ending.Do(func() {
		close(p.stop)
		p.worker.Wait()
		_ = p.flush() // a last time; what it leaves is lost
		lost := p.waiting.end(p.log)
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
