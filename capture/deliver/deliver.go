package deliver

import (
	"context"
	"errors"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Item is a turn that is to be delivered to one group.
type Item struct {
	ledger.Entry

	// Messages are those that the group was not known to hold when they were read. Have
	// also counts those that were seen there since.
	Messages []graphiti.Message
}

// Ledger keeps turns until the memory is known to hold them. Several goroutines call its
// methods, but for one group only one at a time. What a method has written is durable
// when it returns. A call that failed is repeated until it works; it may have worked the
// first time.
type Ledger interface {
	// Groups calls found for each group with pending turns. fresh says that not
	// all of them are backfilled.
	Groups(found func(group string, fresh bool)) error

	// InDoubt calls found for the items that were sent and that the memory may or
	// may not hold, the oldest first.
	InDoubt(found func(Item)) error

	// Next returns the first n pending items of a group, in their order.
	Next(ctx context.Context, group string, n int) ([]Item, error)

	// MarkSent notes, before it happens, that items are sent.
	MarkSent(items []Item) error

	// Requeue notes that items wait again, with what was seen of them.
	Requeue(items []Item, reason string) error

	// MarkDelivered notes that a group has items; verified says that they were
	// seen there.
	MarkDelivered(items []Item, verified bool) error

	// MarkDead notes that there will be no further attempt.
	MarkDead(item Item, reason string) error
}

// Memory takes what is to be remembered. Its calls must end when their context
// does.
type Memory interface {
	Search(ctx context.Context, groups []string, query string, max int) ([]graphiti.Fact, error)
	Write(ctx context.Context, group string, messages []graphiti.Message) error
	Episodes(ctx context.Context, group string, n int) ([]graphiti.Episode, error)
	Forget(ctx context.Context, group string) error
	ForgetEpisodes(ctx context.Context, group string, meant func(*graphiti.Episode) bool) ([]string, error)
	Health(ctx context.Context) error

	// Clock returns the latest time that the memory's clock is known to have reached:
	// the memory may hide a message with a later timestamp. It returns zero if the
	// memory hides none, or if its clock is not known yet.
	Clock() time.Time
}

// Timing is when things happen and how many at a time.
type Timing struct {
	Batch        int           // turns in one call
	Window       int           // turns in flight to one worker
	Backfill     int           // the same while a backfilled one is sent
	StallAfter   time.Duration // without a sign of work
	FirstLook    time.Duration // after sending; doubled up to LastLook
	LastLook     time.Duration
	DoubtAfter   time.Duration // after that the memory will not accept what is in doubt any more, and a barrier is sent for it
	ShowAfter    time.Duration // how long a turn is searched for that cannot be listed
	FirstBarrier time.Duration // between two barriers; doubled up to LastBarrier
	LastBarrier  time.Duration
	MaxLosses    int // how often the first turn in line is lost, the last time as the only one in flight, until it is dead
}

// DefaultTiming is for a Graphiti that takes seconds for a message, and not too
// slow for one that takes none.
func DefaultTiming(batch int, stallAfter time.Duration) Timing {
	return Timing{
		Batch:        batch,
		Window:       max(64, 2*batch),
		Backfill:     8,
		StallAfter:   stallAfter,
		FirstLook:    25 * time.Millisecond,
		LastLook:     30 * time.Second,
		DoubtAfter:   min(10*time.Second, stallAfter/4),
		ShowAfter:    min(time.Minute, stallAfter),
		FirstBarrier: min(30*time.Second, stallAfter/4),
		LastBarrier:  5 * time.Minute,
		MaxLosses:    3,
	}
}

// Delivery is the result of one turn in one group.
type Delivery struct {
	Trace    string // of the turn
	Group    string
	Began    time.Time // when it was sent
	Verified bool      // it was seen there
	Err      error     // it was not kept
}

var (
	errLost = errors.New("lost by the memory")
	errDead = errors.New("refused by the memory")
)
