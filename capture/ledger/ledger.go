// Package ledger owns the durable record of turns: which of them wait for which
// group, which were handed over, and which need not be taken again. It keeps
// them in one SQLite file; what its methods leave behind is committed.
//
// It must not know how a turn is written to a memory, nor who delivers it. Of
// our packages it may import graphiti (scopes and marks) and cache/sqlite.
package ledger

import (
	"context"
	"database/sql"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

//go:embed schema_1.sql
var schema1 string

//go:embed schema_2.sql
var schema2 string

//go:embed schema_3.sql
var schema3 string

//go:embed schema_4.sql
var schema4 string

const (
	// SeenFor is how long a delivered turn is remembered. Clients resend their
	// history, but hardly that of last season.
	SeenFor = 90 * 24 * time.Hour

	// SeenMax bounds how many are remembered, at about 100 bytes each.
	SeenMax = 2_000_000
)

// Ledger is the file in which turns wait until the memory is known to hold
// them. Its methods may be called from several goroutines; what they leave
// behind is committed.
type Ledger struct{ db *sqlite.DB }

func Open(path string) (*Ledger, error) {
	db, err := sqlite.Open(path, sqlite.Options{Migrations: []string{schema1, schema2, schema3, schema4}, Sync: sqlite.SyncFull, Holds: spoolHolds})
	if err != nil {
		return nil, fmt.Errorf("open spool: %w", err)
	}
	return &Ledger{db}, nil
}

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
	err = each(ctx, s.db, "SELECT dead, count(*), sum(bytes) FROM spool GROUP BY dead", nil, func(scan func(...any) error) error {
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

// Added is what became of a turn that was to be stored.
type Added struct {
	Groups []string // that had not had it
	Size   Size
}

// Add waits for the end of what it has begun, whoever gives up meanwhile: a turn
// of which nobody knows that it is there would not be delivered before the next
// start.
func (s *Ledger) Add(ctx context.Context, turns []Turn, now time.Time) (all []Added, err error) {
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("spool turn: %w", err)
	}
	err = s.db.Write(context.WithoutCancel(ctx), func(tx *sqlite.Tx) error {
		all = all[:0]
		for i := range turns {
			a, err := s.addIn(tx, &turns[i], now)
			if err != nil {
				return err
			}
			all = append(all, a)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("spool turn: %w", err)
	}
	return all, nil
}

func (s *Ledger) addIn(tx *sqlite.Tx, t *Turn, now time.Time) (a Added, err error) {
	said := t.Digest()
	for _, target := range t.Targets {
		forgotten, err := leftOut(tx, t, target.Group, now)
		if err != nil {
			return a, err
		}
		if forgotten {
			continue
		}
		part, err := missing(tx, t, said, target.Group)
		if err != nil {
			return a, err
		}
		if part == nil {
			continue
		}
		body, err := json.Marshal(part)
		if err != nil {
			return a, err
		}
		_, err = tx.Exec("INSERT INTO spool (turn, grp, scope, born, bytes, later, open, said, body) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
			part.ID, target.Group, string(target.Scope), now.UnixMilli(), len(body), t.Earlier, t.Open, said, string(body))
		if err != nil {
			return a, err
		}
		if err := own(tx, t, target, now); err != nil {
			return a, err
		}
		a.Groups = append(a.Groups, target.Group)
		a.Size = a.Size.Plus(Size{1, len(body)})
	}
	return a, nil
}

// missing is what a group does not have of a turn: all of it, or what came
// after the parts that it has; nil when it has everything. said is of the whole
// turn.
func missing(tx *sqlite.Tx, t *Turn, said, group string) (*Turn, error) {
	switch {
	case t.Earlier:
		if cut, err := has(tx, t, CutPrefix+t.ID, said, group); err != nil || cut != hasNone {
			return nil, err
		}
	case !t.Open: // it was answered again, and to the end
		if _, err := tx.Exec("DELETE FROM seen WHERE turn = ? AND grp = ?", CutPrefix+t.ID, group); err != nil {
			return nil, err
		}
	}
	for part := t; ; part = part.Rest() {
		had, err := has(tx, t, part.ID, said, group)
		if err == nil && had == hasNone && t.Earlier {
			had, err = heard(tx, said, group)
		}
		switch {
		case err != nil:
			return nil, err
		case had == hasNone:
			return part, nil
		case had == hasAll || t.Assistant == "":
			return nil, nil
		}
	}
}

// own notes whose a group is, and which session left something there.
func own(tx *sqlite.Tx, t *Turn, target graphiti.Target, now time.Time) error {
	_, err := tx.Exec("INSERT INTO groups VALUES (?, ?, ?, ?) ON CONFLICT DO NOTHING",
		target.Group, t.Owner, string(target.Scope), t.KeyOf(target.Scope))
	if err == nil && t.Session != "" {
		_, err = tx.Exec("INSERT INTO talks VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET at = excluded.at WHERE at < excluded.at",
			graphiti.Talk(t.Session), t.Owner, target.Group, now.Truncate(24*time.Hour).Unix())
	}
	if err == nil && slices.Contains(graphiti.Kinds, t.Kind) {
		_, err = tx.Exec("INSERT INTO promoted VALUES (?) ON CONFLICT DO NOTHING", target.Group)
	}
	return err
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

// extent is how much a group has, or waits for, of a turn.
type extent uint8

const (
	hasNone  extent = iota
	hasBegun        // its end is missing there
	hasAll          // or the same beginning
)

// has says how much a group has of a turn, or of the part of it with that id, in
// which that was said. What the group has forgotten it does not have where it
// may be told again; else it has all of it.
func has(tx *sqlite.Tx, t *Turn, id, said, group string) (extent, error) {
	var begun, gone bool
	err := tx.QueryRow(`SELECT open AND said <> ?3, 0 FROM spool WHERE turn = ?1 AND grp = ?2
		UNION ALL SELECT open AND said <> ?3 AND NOT gone, gone FROM seen WHERE turn = ?1 AND grp = ?2 LIMIT 1`, id, group, said).Scan(&begun, &gone)
	switch {
	case errors.Is(err, sql.ErrNoRows):
		return hasNone, nil
	case err != nil:
		return hasNone, err
	case gone && t.Again:
		return hasNone, run(tx, "DELETE FROM seen WHERE turn = ? AND grp = ?", id, group)
	case begun:
		return hasBegun, nil
	}
	return hasAll, nil
}

// heard is has for any turn: whether a group has one in which the same was
// said.
func heard(tx *sqlite.Tx, said, group string) (extent, error) {
	var found bool
	err := tx.QueryRow(`SELECT EXISTS (SELECT 1 FROM spool WHERE grp = ?1 AND said = ?2)
		OR EXISTS (SELECT 1 FROM seen WHERE grp = ?1 AND said = ?2)`, group, said).Scan(&found)
	if found {
		return hasAll, err
	}
	return hasNone, err
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
		return "", fmt.Errorf("read spool: %w", err)
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
		return fmt.Errorf("read spool: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		if err := f(rows.Scan); err != nil {
			return fmt.Errorf("read spool: %w", err)
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read spool: %w", err)
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
