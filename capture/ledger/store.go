package ledger

import (
	"context"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
)

// Store holds the copies of turns until their delivery is verified, split into its roles. It
// is the ledger, or the queue that replicas share. It is safe for concurrent use; every write
// is committed when the method returns.
type Store struct {
	Copies
	Dispatch
	Bounds
	Rows
}

// Copies rejects and forgets copies.
type Copies interface {
	// CutOff records that a turn is not stored, without its text. A client's history or
	// transcript can no longer add the turn.
	CutOff(ctx context.Context, t *Turn, now time.Time) error

	// Forget removes the turns of a part that are older than a generation, and rejects such
	// turns from now on. It may be called several times for one part; last also deletes the
	// part's ownership rows.
	Forget(part Part, generation int64, last bool) (Dropped, error)

	Instance() (string, error) // unique name
}

// Dispatch is the store's interface for the delivery of turns, which starts with Groups, and
// with InDoubt for entries sent by an earlier process.
type Dispatch interface {
	Groups(found func(group string, fresh bool)) error
	InDoubt(found func(Entry)) error
	Next(ctx context.Context, group string, n int) ([]Entry, error)
	MarkSent(entries []Entry) error
	Requeue(entries []Entry, reason string) error
	MarkDelivered(entries []Entry, verified bool, now time.Time) (Size, error)
	MarkDead(e *Entry, reason string) (Size, error)
}

// Bounds counts the turns of a store and keeps it within its limits.
type Bounds interface {
	Sizes(ctx context.Context) (Sizes, error)
	Totals() (Totals, error)
	Oldest() (time.Time, error)
	Cut(over Size) (Dropped, error)
	DropBefore(t time.Time) (Dropped, error)
	DropDead(numbers []int64) (Dropped, error)
}

// Rows provides the entries of a store to the operator's commands.
type Rows interface {
	Items(ctx context.Context, o ListOptions) ([]Item, int, error)
	Retry(numbers []int64) (groups []string, back Size, err error)
	Owned(ctx context.Context, owner string) ([]Owned, error)
}

// Store returns the ledger in all roles of a Store.
func (s *Ledger) Store() Store { return Store{s, s, s, s} }

// Repair configures the recovery of a damaged file into a new one. It restores the
// invariants: one name, and one row for each count.
var Repair = sqlite.Salvage{After: []string{
	"DELETE FROM instance WHERE rowid > (SELECT min(rowid) FROM instance)",
	"INSERT INTO instance SELECT lower(hex(randomblob(8))) WHERE NOT EXISTS (SELECT 1 FROM instance)",
	"INSERT OR IGNORE INTO totals VALUES ('delivered', 0), ('verified', 0), ('dropped', 0)",
}}
