package ledger

import (
	"context"
	_ "embed"
	"fmt"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
)

//go:embed schema_1.sql
var schema1 string

//go:embed schema_2.sql
var schema2 string

//go:embed schema_3.sql
var schema3 string

//go:embed schema_4.sql
var schema4 string

// schema5 takes over what the first edition kept in two tables.
//
//go:embed schema_5.sql
var schema5 string

//go:embed schema_6.sql
var schema6 string

var schema = []string{schema1, schema2, schema3, schema4, schema5, schema6}

const (
	// SeenFor is how long a settled turn is remembered. Clients send their
	// history again, but hardly that of last season.
	SeenFor = 90 * 24 * time.Hour

	// SeenMax bounds how many are remembered, at about 100 bytes each.
	SeenMax = 2_000_000
)

// Ledger is the record of turns in one file. It is safe for concurrent use.
type Ledger struct{ db *sqlite.DB }

func Open(path string) (*Ledger, error) {
	db, err := sqlite.Open(path, sqlite.Options{Migrations: schema, Sync: sqlite.SyncFull, Holds: spoolHolds})
	if err != nil {
		return nil, fmt.Errorf("open the ledger: %w", err)
	}
	return &Ledger{db}, nil
}

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

// Sizes are those of the turns that wait, and of the dead.
type Sizes struct{ Pending, Dead Size }

// Sizes counts what the file holds.
func (s *Ledger) Sizes(ctx context.Context) (n Sizes, err error) {
	err = each(ctx, s.db, "SELECT state = 'dead', count(*), sum(bytes) FROM turns WHERE "+queued+" GROUP BY 1", nil, func(scan func(...any) error) error {
		var dead bool
		var z Size
		if err := scan(&dead, &z.Turns, &z.Bytes); err != nil {
			return err
		}
		if dead {
			n.Dead = z
		} else {
			n.Pending = z
		}
		return nil
	})
	return n, err
}

// Promoted are the groups into which something was promoted.
func (s *Ledger) Promoted(ctx context.Context) (map[string]bool, error) {
	rows, err := s.db.Query(ctx, "SELECT grp FROM promoted")
	if err != nil {
		return nil, fmt.Errorf("list promoted groups: %w", err)
	}
	defer rows.Close()
	all := make(map[string]bool)
	for rows.Next() {
		var g string
		if err := rows.Scan(&g); err != nil {
			return nil, fmt.Errorf("list promoted groups: %w", err)
		}
		all[g] = true
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("list promoted groups: %w", err)
	}
	return all, nil
}

// Totals are counts of turns since the file exists.
type Totals struct{ Delivered, Verified, Dropped int }

func (s *Ledger) Totals() (t Totals, err error) {
	err = each(context.Background(), s.db, "SELECT name, n FROM totals", nil, func(scan func(...any) error) error {
		var name string
		var n int
		if err := scan(&name, &n); err != nil {
			return err
		}
		switch name {
		case "delivered":
			t.Delivered = n
		case "verified":
			t.Verified = n
		case "dropped":
			t.Dropped = n
		}
		return nil
	})
	return t, err
}

func count(tx *sqlite.Tx, name string, n int) error {
	_, err := tx.Exec("UPDATE totals SET n = n + ? WHERE name = ?", n, name)
	return err
}

// Instance is the name of this spool among others.
func (s *Ledger) Instance() (id string, err error) {
	if err := s.db.QueryRow(context.Background(), "SELECT id FROM instance", nil, &id); err != nil {
		return "", fmt.Errorf("read the ledger: %w", err)
	}
	return id, nil
}

func (s *Ledger) Close() error { return s.db.Close() }

// Trouble is what is known to be wrong with the file; nil: nothing.
func (s *Ledger) Trouble() *sqlite.Trouble { return s.db.Trouble() }

// Check looks whether the file can be used, and returns what is wrong.
func (s *Ledger) Check() *sqlite.Trouble { return s.db.Check() }

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

// rowsIn is each within a transaction; the rows are closed when it returns.
func rowsIn(tx *sqlite.Tx, statement string, args []any, f func(scan func(...any) error) error) error {
	rows, err := tx.Query(statement, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := f(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

// spoolHolds is what is lost with the spool's file, for people.
const spoolHolds = "the turns that waited in it for the memory, and what was delivered already"
