package ledger

import (
	"context"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Store is the durable record of turns, split into its roles: a file of one process, or a
// database that replicas share. It is safe for concurrent use; every write is committed when the
// method returns.
type Store interface {
	Record
	Groups
	Copies
	Queue
	History
	Holds
	File
	graphiti.Lister // of the messages
}

// Record decides which turns are new, and forgets.
type Record interface {
	// Add stores each turn and its messages for those of its groups that lack it, in one
	// transaction. It rejects turns of scopes with a newer generation.
	Add(ctx context.Context, turns []Turn, now time.Time) ([]Added, error)

	// Keep is Add for turns that Graphiti has.
	Keep(ctx context.Context, turns []Turn, now time.Time) ([]Added, error)

	// New returns the number of turns that Add would store, and stores nothing.
	New(ctx context.Context, turns []Turn, now time.Time) (int, error)

	// CutOff records that a turn is not stored, without its text. A client's history or
	// transcript can no longer add the turn.
	CutOff(ctx context.Context, t *Turn, now time.Time) error

	// Whole reports for each turn whether all of its groups have all of it.
	Whole(ctx context.Context, turns []Turn) ([]bool, error)

	// Forget deletes the messages and turns of a part that are older than a generation, and
	// rejects such turns from now on. Withdrawn returns the ones that Graphiti may have.
	Forget(part Part, generation int64) error

	// Raise stores the generations of forgotten scopes, forgets older turns of them, and returns
	// the newest stored generation.
	Raise(floors map[string]int64) (newest int64, err error)
}

// Groups provides information about the groups that were written to.
type Groups interface {
	// Owned returns all groups, or those of one owner.
	Owned(ctx context.Context, owner string) ([]Owned, error)

	// SessionGroups returns the groups with recent turns of a session.
	SessionGroups(ctx context.Context, session string) ([]Owned, error)

	// Promoted returns the groups with promoted texts.
	Promoted(ctx context.Context) (map[string]bool, error)
}

// Copies is the part of a Store that copies turns to Graphiti. One process uses it at a time: a
// write fails without the lease. It changes only a copy that is waiting or sent: a forgotten turn
// stays forgotten.
type Copies interface {
	// Waiting returns the groups with waiting copies.
	Waiting(ctx context.Context) (groups []string, err error)

	// Next returns the first n waiting copies of a group, or without one of all groups but some:
	// in the order of arrival, those from histories last.
	Next(ctx context.Context, group string, skip []string, n int) ([]Copy, error)

	// Sent returns the sent copies in the order of sending.
	Sent(ctx context.Context) ([]Copy, error)

	// MarkSent marks a copy as sent, before it is sent, and sets its position and its number of
	// sends. ok is false if it is settled.
	MarkSent(c *Copy) (ok bool, err error)

	// Requeue makes a copy wait, with its number of losses.
	Requeue(c *Copy, reason string) error

	// MarkDelivered settles a copy; verified reports whether Graphiti lists it.
	MarkDelivered(c *Copy, verified bool) error

	// MarkDead gives a copy up, with its number of losses, until Retry.
	MarkDead(c *Copy, reason string) error

	// Withdrawn returns the forgotten parts of a group, or of all, that Graphiti may have.
	Withdrawn(ctx context.Context, group string) ([]Withdrawn, error)

	// Settle deletes rows of Withdrawn.
	Settle(list []Withdrawn) error
}

// Queue provides the copies to the operator's commands. Without numbers, Retry and Drop mean all
// dead copies; they return the number of changed ones.
type Queue interface {
	// Items returns queued copies, oldest first, without texts, and the number of all matching
	// ones.
	Items(ctx context.Context, o ListOptions) ([]Item, int, error)

	Counts(ctx context.Context) (Counts, error)
	Totals() (Totals, error)
	Retry(numbers []int64) (int, error)
	Drop(numbers []int64) (int, error)

	// Send queues the turns since a time that Graphiti never got, and returns their number.
	Send(since time.Time) (int, error)
}

// History records the reads from Graphiti.
type History interface {
	// Imported returns the time of the last import of a group's history, or zero, and the
	// newest generation.
	Imported(ctx context.Context, group string) (last time.Time, generation int64, err error)
	SetImported(group string) error

	// AddUnread stores episodes until Read.
	AddUnread(list []Unread) error

	// Unread returns the first n episodes to read. Failed ones follow the others.
	Unread(ctx context.Context, n int) ([]Unread, error)

	// Read ends the wait of an episode, or counts a failed attempt.
	Read(u *Unread, done bool) error
}

// Holds stores turns outside of all groups.
type Holds interface {
	Hold(h *Held) error
	EachHeld(key string, f func(h *Held) error) error
	Unhold(key string) error
}

// File is the place of a Store.
type File interface {
	// Copied makes new turns wait to be copied to Graphiti if worth returns true for them. It
	// is called once, before all other methods.
	Copied(worth func(*Turn) bool)

	// Prune deletes old rows of settled turns, and all but the newest most.
	Prune(now time.Time, most int) error

	// Expire deletes the messages that are older than their age, or only counts them.
	Expire(ctx context.Context, r *Retention, now time.Time, dry bool) ([]Expired, error)

	// Fault returns the known problem of this process's file, or nil. Check tests the file.
	Fault() *sqlite.Fault
	Check() *sqlite.Fault

	Close() error
}

var _ Store = (*Ledger)(nil)

// Repair configures the recovery of a damaged file into a new one. It restores the rows of
// counts.
var Repair = sqlite.Salvage{After: []string{
	"INSERT OR IGNORE INTO totals VALUES ('delivered', 0), ('verified', 0), ('dropped', 0)",
}}
