package ledger

import (
	"context"
	_ "embed" // for Schema
	"fmt"
	"iter"
	"sync/atomic"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/database"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Schema creates the ledger's tables, in a file of its own or in a memory's file.
//
//go:embed schema.sql
var Schema string

// PostgresSchema creates the same tables in Postgres.
//
//go:embed schema_postgres.sql
var PostgresSchema string

const (
	// SeenFor is the retention of settled turns. Clients send their history again, but
	// rarely after months.
	SeenFor = 90 * 24 * time.Hour

	// SeenMax is the most settled turns to retain, at about 100 bytes each.
	SeenMax = 2_000_000
)

// Ledger is the record of turns in one file. It is safe for concurrent use.
type Ledger struct {
	db     database.DB
	memory MessageStore     // in the same file; nil in tests
	say    Say              // makes messages for memory
	worth  func(*Turn) bool // reports whether Graphiti should get a copy of a new turn; nil without Graphiti

	// kept counts the stored turns that the totals table does not include yet. Prune adds
	// them, because counting each turn would write a page. A crash loses at most a minute
	// of counts.
	kept atomic.Int64
}

// MessageStore is a memory in the ledger's file. It writes and deletes messages in the ledger's
// transactions.
type MessageStore interface {
	// Lock makes other processes wait that write to the groups, until the end of the
	// transaction.
	Lock(tx *database.Tx, groups []string) error

	// Put writes messages to a locked group, except those with names that it has.
	Put(tx *database.Tx, group string, messages []graphiti.Row) error

	// Delete deletes the messages of a group for which meant returns true, and returns
	// their names. A nil meant selects all messages.
	Delete(tx *database.Tx, group string, meant func(*graphiti.Row) bool) (names []string, err error)

	// DeleteFacts deletes the facts of a group that were stored before a time, and counts
	// them.
	DeleteFacts(tx *database.Tx, group string, before time.Time) (n int, err error)

	// Extents measures the messages of each group.
	Extents(ctx context.Context) (map[string]graphiti.Extent, error)

	graphiti.Lister
	Close() error
}

// Say returns the messages of a turn for a group with that scope.
type Say func(t *Turn, scope graphiti.Scope) []graphiti.Row

// In returns the ledger in a memory's file, which must have the tables of Schema.
func In(db database.DB, m MessageStore, say Say) *Ledger { return &Ledger{db: db, memory: m, say: say} }

// Copied makes new turns wait to be copied to Graphiti if worth returns true for them. It is
// called once, before all other methods.
func (s *Ledger) Copied(worth func(*Turn) bool) { s.worth = worth }

// Promoted returns the groups with promoted texts.
func (s *Ledger) Promoted(ctx context.Context) (map[string]bool, error) {
	all := make(map[string]bool)
	err := each(ctx, s.db, "SELECT grp FROM promoted", nil, func(scan func(...any) error) error {
		var group string
		err := scan(&group)
		all[group] = true
		return err
	})
	return all, err
}

// Totals counts turns since the creation of the file.
type Totals struct{ Delivered, Verified, Dropped int }

func (s *Ledger) Totals() (t Totals, err error) {
	const n = "coalesce((SELECT n FROM totals WHERE name = "
	err = s.db.QueryRow(context.Background(), "SELECT "+n+"'delivered'), 0), "+n+"'verified'), 0), "+n+"'dropped'), 0)", nil,
		&t.Delivered, &t.Verified, &t.Dropped)
	kept := int(s.kept.Load())
	t.Delivered, t.Verified = t.Delivered+kept, t.Verified+kept
	return t, err
}

// countKept adds kept to the totals table.
func (s *Ledger) countKept(tx *database.Tx) error {
	n := s.kept.Load()
	if n == 0 {
		return nil
	}
	tx.Committed(func() { s.kept.Add(-n) })
	return run(tx, "UPDATE totals SET n = n + ? WHERE name IN ('delivered', 'verified')", n)
}

func count(tx *database.Tx, name string, n int) error {
	return run(tx, "UPDATE totals SET n = n + ? WHERE name = ?", n, name)
}

// historyTurn names the row of a group that has the time of the last import of its history.
const historyTurn = "graphiti-proxy.history"

// Imported returns the time of the last import of a group's history, or zero, and the newest
// generation.
func (s *Ledger) Imported(ctx context.Context, group string) (last time.Time, generation int64, err error) {
	var at int64
	err = s.db.QueryRow(ctx, "SELECT coalesce((SELECT at FROM turns WHERE turn = ? AND grp = ?), 0), coalesce((SELECT max(generation) FROM floors), 0)",
		[]any{historyTurn, group}, &at, &generation)
	if at > 0 {
		last = time.UnixMilli(at)
	}
	return last, generation, err
}

// SetImported records the import of a group's history.
func (s *Ledger) SetImported(group string) error {
	return s.write("record an import", func(tx *database.Tx) error {
		return run(tx, "INSERT INTO turns (turn, grp, state, digest, at) VALUES (?, ?, 'cut', '', ?) ON CONFLICT (turn, grp) DO UPDATE SET at = excluded.at", historyTurn, group, time.Now().UnixMilli())
	})
}

// Close closes the file.
func (s *Ledger) Close() error { return s.memory.Close() }

// Rows implements graphiti.Lister.
func (s *Ledger) Rows(ctx context.Context, group string, f graphiti.Filter) iter.Seq2[graphiti.Row, error] {
	return s.memory.Rows(ctx, group, f)
}

// Extents measures the messages of each group.
func (s *Ledger) Extents(ctx context.Context) (map[string]graphiti.Extent, error) {
	return s.memory.Extents(ctx)
}

// Fault returns the known problem of the file, or nil.
func (s *Ledger) Fault() *database.Fault { return s.db.Fault() }

// Check tests the file and returns its problem, or nil.
func (s *Ledger) Check() *database.Fault { return s.db.Check() }

func (s *Ledger) write(what string, fn func(*database.Tx) error) error {
	if err := s.db.Write(context.Background(), fn); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// deliver is write for the process that delivers: it fails once another process has the lease.
func (s *Ledger) deliver(what string, fn func(*database.Tx) error) error {
	return s.write(what, func(tx *database.Tx) error {
		if err := database.Led(s.db, tx); err != nil {
			return err
		}
		return fn(tx)
	})
}

func each(ctx context.Context, db database.DB, query string, args []any, f func(scan func(...any) error) error) error {
	if err := db.Each(ctx, query, args, f); err != nil {
		return fmt.Errorf("read the ledger: %w", err)
	}
	return nil
}
