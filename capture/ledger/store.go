package ledger

import (
	"context"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
)

// Store keeps turns until the memory is known to hold them. It is the file of one
// process, or what replicas share, by its roles. Several goroutines may call its
// methods; what a method has written is committed when it returns.
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

	// CutOff notes that a turn's answer came to no clean end. A client's history cannot
	// add the turn any more.
	CutOff(ctx context.Context, t *Turn, now time.Time) error

	// Forget takes out the turns of a part that are older than a generation, and lets
	// none be added from now on. It may be called several times for one part; with last
	// set it also forgets that there was something in the part.
	Forget(part Part, generation int64, last bool) (Dropped, error)

	// MarkForgotten says that a group has forgotten turns that were delivered to it.
	MarkForgotten(group string, turns []string) error

	Instance() (string, error) // a name among other stores
	Close() error
}

// Line is the store as delivery uses it. Delivery begins with Groups, and with InDoubt
// for the entries that an earlier process sent.
type Line interface {
	Groups(found func(group string, fresh bool)) error
	InDoubt(found func(Entry)) error
	Next(ctx context.Context, group string, n int) ([]Entry, error)
	MarkSent(entries []Entry) error
	Requeue(entries []Entry, reason string) error
	MarkDelivered(entries []Entry, verified bool, now time.Time) (Size, error)
	MarkDead(e *Entry, reason string) (Size, error)
}

// Bounds are the counts of a store, and the calls that keep it within its limits.
type Bounds interface {
	Sizes(ctx context.Context) (Sizes, error)
	Totals() (Totals, error)
	Oldest() (time.Time, error)
	Cut(over Size) (Dropped, error)
	DropBefore(t time.Time) (Dropped, error)
	DropDead(numbers []int64) (Dropped, error)
	Prune(now time.Time, most int) error
}

// Rows are the entries of a store as people ask for them.
type Rows interface {
	Items(ctx context.Context, o ListOptions) ([]Item, int, error)
	Retry(numbers []int64) (groups []string, back Size, err error)
	Promoted(ctx context.Context) (map[string]bool, error)
	Owned(ctx context.Context, owner string) ([]Owned, error)
	SessionGroups(ctx context.Context, session string) ([]Owned, error)
	Waiting(ctx context.Context, part Part, f func(Entry) error) error
}

// Arrivals lists the turns that came in, and those that have left.
type Arrivals interface {
	// Since calls f for at most n entries that came in after a number and are still
	// queued, the lowest number first.
	Since(ctx context.Context, after int64, n int, f func(Entry) error) error

	// Left returns those of the numbers whose turns are not queued any more.
	Left(ctx context.Context, numbers []int64) ([]int64, error)
}

// Store is the file in all its roles.
func (s *Ledger) Store() Store { return Store{s, s, s, s, s} }

// Repair says how a damaged file is read into a new one. The ledger has one name
// and each of its counts, whatever was lost of them.
var Repair = sqlite.Salvage{After: []string{
	"DELETE FROM instance WHERE rowid > (SELECT min(rowid) FROM instance)",
	"INSERT INTO instance SELECT lower(hex(randomblob(8))) WHERE NOT EXISTS (SELECT 1 FROM instance)",
	"INSERT OR IGNORE INTO totals VALUES ('delivered', 0), ('verified', 0), ('dropped', 0)",
}}
