package ledger

import (
	"context"
	_ "embed" // of Schema
	"fmt"
	"sync/atomic"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Schema makes the ledger's tables, in a file of its own or in a memory's.
//
//go:embed schema.sql
var Schema string

const (
	// SeenFor is how long a settled turn is remembered. Clients send their
	// history again, but hardly that of last season.
	SeenFor = 90 * 24 * time.Hour

	// SeenMax bounds how many are remembered, at about 100 bytes each.
	SeenMax = 2_000_000
)

// Ledger is the record of turns in one file. It is safe for concurrent use.
type Ledger struct {
	db     *sqlite.DB
	memory Memory // in the same file; nil: turns wait until they are delivered
	say    Say    // of that memory

	// kept counts the turns of that memory that totals does not count yet. Prune adds
	// them: each turn would write a page for it. A kill may take a minute of them, which
	// nothing but the count tells of.
	kept atomic.Int64
}

// Memory is a memory in the ledger's file. It writes and deletes messages in the
// ledger's own transaction.
type Memory interface {
	// Put writes messages of a group, less those whose names it has.
	Put(tx *sqlite.Tx, group string, messages []graphiti.Message) error

	// Delete deletes the messages of a group for which meant returns true, and returns
	// their names. A nil meant means all messages.
	Delete(tx *sqlite.Tx, group string, meant func(*graphiti.Episode) bool) (names []string, err error)

	Close() error
}

// Say makes the messages of a turn for a group with that scope.
type Say func(t *Turn, scope graphiti.Scope) []graphiti.Message

// Open opens the ledger of a memory that is elsewhere, in a file of its own.
func Open(path string) (*Ledger, error) {
	db, err := sqlite.Open(path, sqlite.Options{Schema: Schema, Version: 2, Sync: sqlite.SyncFull, Holds: spoolHolds})
	if err != nil {
		return nil, fmt.Errorf("open the ledger: %w", err)
	}
	return &Ledger{db: db}, nil
}

// In returns the ledger in a memory's file, which has the tables of Schema.
func In(db *sqlite.DB, m Memory, say Say) *Ledger { return &Ledger{db: db, memory: m, say: say} }

// queued are the states of turns whose texts are needed. The words are those of
// the indexes.
const queued = "state IN ('pending', 'sent', 'dead')"

// Size is a number of turns, one for each group, and the bytes they take.
type Size struct {
	Turns int
	Bytes int
}

func (s Size) Plus(o Size) Size  { return Size{s.Turns + o.Turns, s.Bytes + o.Bytes} }
func (s Size) Minus(o Size) Size { return Size{s.Turns - o.Turns, s.Bytes - o.Bytes} }

// Sizes are the sizes of the turns that wait and of the dead ones.
type Sizes struct{ Pending, Dead Size }

// Sizes counts what the file holds.
func (s *Ledger) Sizes(ctx context.Context) (n Sizes, err error) {
	err = s.db.QueryRow(ctx, `SELECT count(*) FILTER (WHERE state <> 'dead'), coalesce(sum(bytes) FILTER (WHERE state <> 'dead'), 0),
		count(*) FILTER (WHERE state = 'dead'), coalesce(sum(bytes) FILTER (WHERE state = 'dead'), 0) FROM turns WHERE `+queued, nil,
		&n.Pending.Turns, &n.Pending.Bytes, &n.Dead.Turns, &n.Dead.Bytes)
	return n, err
}

// Promoted are the groups into which something was promoted.
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

// Totals are counts of turns since the file exists.
type Totals struct{ Delivered, Verified, Dropped int }

func (s *Ledger) Totals() (t Totals, err error) {
	const n = "coalesce((SELECT n FROM totals WHERE name = "
	err = s.db.QueryRow(context.Background(), "SELECT "+n+"'delivered'), 0), "+n+"'verified'), 0), "+n+"'dropped'), 0)", nil,
		&t.Delivered, &t.Verified, &t.Dropped)
	kept := int(s.kept.Load())
	t.Delivered, t.Verified = t.Delivered+kept, t.Verified+kept
	return t, err
}

// countKept adds what kept counts to totals.
func (s *Ledger) countKept(tx *sqlite.Tx) error {
	n := s.kept.Load()
	if n == 0 {
		return nil
	}
	tx.Committed(func() { s.kept.Add(-n) })
	return run(tx, "UPDATE totals SET n = n + ? WHERE name IN ('delivered', 'verified')", n)
}

func count(tx *sqlite.Tx, name string, n int) error {
	return run(tx, "UPDATE totals SET n = n + ? WHERE name = ?", n, name)
}

// Instance returns the name of this ledger, which no other one has.
func (s *Ledger) Instance() (id string, err error) {
	if err := s.db.QueryRow(context.Background(), "SELECT id FROM instance", nil, &id); err != nil {
		return "", fmt.Errorf("read the ledger: %w", err)
	}
	return id, nil
}

// Close closes the file, and with it the memory that is in it.
func (s *Ledger) Close() error {
	if s.memory != nil {
		return s.memory.Close()
	}
	return s.db.Close()
}

// Fault is what is known to be wrong with the file; nil: nothing.
func (s *Ledger) Fault() *sqlite.Fault { return s.db.Fault() }

// Check looks whether the file can be used, and returns what is wrong.
func (s *Ledger) Check() *sqlite.Fault { return s.db.Check() }

func (s *Ledger) write(what string, fn func(*sqlite.Tx) error) error {
	if err := s.db.Write(context.Background(), fn); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// each calls f for each row of a query.
func each(ctx context.Context, db *sqlite.DB, query string, args []any, f func(scan func(...any) error) error) error {
	rows, err := db.Query(ctx, query, args...)
	if err != nil {
		return fmt.Errorf("read the ledger: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := f(rows.Scan); err != nil {
			return fmt.Errorf("read the ledger: %w", err)
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read the ledger: %w", err)
	}
	return nil
}

// spoolHolds is what is lost with the spool's file, for people.
const spoolHolds = "the turns that waited in it for the memory, and what was delivered already"
