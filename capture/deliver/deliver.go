package deliver

import (
	"context"
	"errors"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Item is a turn to deliver to one group.
type Item struct {
	ledger.Entry

	// Messages are the messages that the group lacked when the item was read. Have also
	// counts messages verified since.
	Messages []graphiti.Row
}

// Ledger stores turns until their delivery is verified. Several goroutines call its
// methods, but only one at a time for a group. Every write is durable when the method
// returns. A failed call is repeated until it succeeds, and may have succeeded the first
// time.
type Ledger interface {
	// Groups calls found for each group with pending turns. fresh reports whether some are
	// not backfilled.
	Groups(found func(group string, fresh bool)) error

	// InDoubt calls found for the items that were sent and may or may not be stored, oldest
	// first.
	InDoubt(found func(Item)) error

	// Next returns the first n pending items of a group in order.
	Next(ctx context.Context, group string, n int) ([]Item, error)

	// MarkSent marks items as sent, before they are sent.
	MarkSent(items []Item) error

	// Requeue returns items to the pending state, with the sides verified so far.
	Requeue(items []Item, reason string) error

	// MarkDelivered marks items as delivered; verified reports whether the group showed
	// them.
	MarkDelivered(items []Item, verified bool) error

	// MarkDead marks an item as a dead letter.
	MarkDead(item Item, reason string) error
}

// Backend stores messages. Its calls must end when their context does.
type Backend interface {
	Search(ctx context.Context, groups []string, query string, max int) ([]graphiti.Fact, error)
	Write(ctx context.Context, group string, messages []graphiti.Row) error
	Episodes(ctx context.Context, group string, n int) ([]graphiti.Row, error)
	Forget(ctx context.Context, group string) error
	ForgetEpisodes(ctx context.Context, group string, meant func(*graphiti.Row) bool) ([]string, error)
	Health(ctx context.Context) error

	// Clock returns the latest time that the memory's clock is known to have reached:
	// the memory may hide a message with a later timestamp. It returns zero if the
	// memory hides none, or if its clock is still unknown.
	Clock() time.Time
}

// Timing configures delays and limits of delivery.
type Timing struct {
	Batch        int           // most turns in one call
	Window       int           // most turns in flight to one worker
	Backfill     int           // the same, while backfilled turns are sent
	StallAfter   time.Duration // time without progress
	FirstLook    time.Duration // delay of the first poll after sending; doubled up to LastLook
	LastLook     time.Duration
	DoubtAfter   time.Duration // after this time the memory no longer accepts a turn in doubt, and a barrier decides
	ShowAfter    time.Duration // how long to search for a turn that cannot be listed
	FirstBarrier time.Duration // delay between barriers; doubled up to LastBarrier
	LastBarrier  time.Duration
	MaxLosses    int // losses that make a turn dead; the last one counts only if the turn was alone in flight
}

// DefaultTiming suits a Graphiti that needs seconds for a message, and wastes little time
// on a faster one.
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

// Delivery is the result of delivering one turn to one group.
type Delivery struct {
	Trace    string // trace ID of the turn
	Group    string
	Began    time.Time // send time
	Verified bool      // the group showed the turn
	Err      error     // why the turn is not stored
}

var (
	errLost = errors.New("lost by the memory")
	errDead = errors.New("refused by the memory")
)
