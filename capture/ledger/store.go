package ledger

import (
	"context"
	"time"
)

// Store is where turns wait until the memory is known to hold them, in its roles:
// the file of one process, or what replicas share. Their methods may be called from
// several goroutines; what they leave behind is committed.
type Store struct {
	Recorder
	Line
	Bounds
	Rows
	Arrivals
}

// Recorder takes turns.
type Recorder interface {
	// Add stores turns for each of their groups that has not had them. Where a
	// group has the beginning of a turn whose end came late, it gets the end.
	Add(ctx context.Context, turns []Turn, now time.Time) ([]Added, error)

	// Whole says of each turn whether all of its groups have all of it.
	Whole(ctx context.Context, turns []Turn) ([]bool, error)

	// CutOff notes that a turn's answer came to no clean end: the turn is not
	// added any more where it comes from a history.
	CutOff(ctx context.Context, t *Turn, now time.Time) error

	// Forget takes the turns of a part out that are of an older generation, and
	// has none kept from now on. The last time it also forgets that there was
	// something.
	Forget(part Part, generation int64, last bool) (Dropped, error)

	// MarkForgotten says that a group has forgotten turns that were delivered to it.
	MarkForgotten(group string, turns []string) error

	Instance() (string, error) // a name among other stores
	Close() error
}

// Line is what delivery goes by, and writes down. It begins with the groups for
// which turns wait, and the entries that an earlier process handed over.
type Line interface {
	Groups(found func(group string, fresh bool)) error
	InDoubt(found func(group string, e Entry)) error
	Next(ctx context.Context, group string, n int) ([]Entry, error)
	MarkSent(group string, entries []Entry) error
	Requeue(group string, entries []Entry, reason string) error
	MarkDelivered(group string, entries []Entry, verified bool, now time.Time) (Size, error)
	MarkDead(group string, e *Entry, reason string) (Size, error)
}

// Bounds are counts, and what keeps them within limits.
type Bounds interface {
	Sizes(ctx context.Context) (Sizes, error)
	Totals() (Totals, error)
	Oldest() (time.Time, error)
	Cut(over Size) (Dropped, error)
	DropBefore(t time.Time) (Dropped, error)
	DropDead(numbers []int64) (Dropped, error)
	Prune(now time.Time, most int) error
}

// Rows are what people ask for.
type Rows interface {
	Items(ctx context.Context, o ListOptions) ([]Item, int, error)
	Retry(numbers []int64) (groups []string, back Size, err error)
	Promoted(ctx context.Context) (map[string]bool, error)
	Owned(ctx context.Context, owner string) ([]Owned, error)
	SessionGroups(ctx context.Context, session string) ([]Owned, error)
	Waiting(ctx context.Context, part Part, f func(Entry) error) error
}

// Arrivals lets somebody follow what comes in, and see what has left.
type Arrivals interface {
	// Since calls f for at most n turns and their groups that came in after a number and
	// are still queued, the lowest number first.
	Since(ctx context.Context, after int64, n int, f func(group string, e Entry) error) error

	// Left returns those of the numbers whose turns are not queued any more.
	Left(ctx context.Context, numbers []int64) ([]int64, error)
}

// Store is the file in all its roles.
func (s *Ledger) Store() Store { return Store{s, s, s, s, s} }
