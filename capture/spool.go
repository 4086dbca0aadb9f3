package capture

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
	// seenFor is how long a delivered turn is remembered. Clients resend their
	// history, but hardly that of last season.
	seenFor = 90 * 24 * time.Hour

	// seenMax bounds how many are remembered, at about 100 bytes each.
	seenMax = 2_000_000
)

// spool is the file in which turns wait until the memory is known to hold
// them. Its methods may be called from several goroutines; what they leave
// behind is committed.
type spool struct{ db *sqlite.DB }

// entry is a turn that waits for one group.
type entry struct {
	seq    int64
	bytes  int
	scope  graphiti.Scope
	have   sides
	losses int
	later  bool
	turn   Turn
}

// sides tells which messages of a turn a group holds.
type sides uint8

const (
	sideUser sides = 1 << iota
	sideAssistant
)

func openSpool(path string) (*spool, error) {
	db, err := sqlite.Open(path, sqlite.Options{Migrations: []string{schema1, schema2, schema3, schema4}, Sync: sqlite.SyncFull, Holds: spoolHolds})
	if err != nil {
		return nil, fmt.Errorf("open spool: %w", err)
	}
	return &spool{db}, nil
}

// size is a number of turns, one for each group, and the bytes they take.
type size struct {
	turns int
	bytes int
}

func (s size) plus(o size) size  { return size{s.turns + o.turns, s.bytes + o.bytes} }
func (s size) minus(o size) size { return size{s.turns - o.turns, s.bytes - o.bytes} }

// sizes are those of the turns that wait, and of the dead.
type sizes struct{ pending, dead size }

// sizes counts what the file holds.
func (s *spool) sizes(ctx context.Context) (n sizes, err error) {
	err = each(ctx, s.db, "SELECT dead, count(*), sum(bytes) FROM spool GROUP BY dead", nil, func(scan func(...any) error) error {
		var dead bool
		var z size
		if err := scan(&dead, &z.turns, &z.bytes); err != nil {
			return err
		}
		if dead {
			n.dead = z
		} else {
			n.pending = z
		}
		return nil
	})
	return n, err
}

// groups calls found for each group for which turns wait that were not handed
// over; fresh says that not all of them are from before their conversation was
// first seen.
func (s *spool) groups(found func(group string, fresh bool)) error {
	return each(context.Background(), s.db, "SELECT grp, min(later) FROM spool WHERE dead = 0 AND sent = 0 GROUP BY grp", nil,
		func(scan func(...any) error) error {
			var group string
			var later bool
			err := scan(&group, &later)
			found(group, !later)
			return err
		})
}

// inDoubt calls found, in the order in which they were handed over, for the
// entries of which it is not known whether the memory holds them.
func (s *spool) inDoubt(found func(group string, e entry)) error {
	return each(context.Background(), s.db,
		"SELECT grp, "+entryColumns+" FROM spool WHERE dead = 0 AND sent > 0 ORDER BY sent, seq", nil,
		func(scan func(...any) error) error {
			var group string
			var e entry
			err := e.scan(func(dest ...any) error { return scan(append([]any{&group}, dest...)...) })
			found(group, e)
			return err
		})
}

const entryColumns = "seq, scope, have, losses, later, body"

func (e *entry) scan(scan func(...any) error) error {
	var body []byte
	if err := scan(&e.seq, &e.scope, &e.have, &e.losses, &e.later, &body); err != nil {
		return err
	}
	e.bytes = len(body)
	if err := json.Unmarshal(body, &e.turn); err != nil {
		return fmt.Errorf("entry %d: %w", e.seq, err)
	}
	return nil
}

// head returns the first n entries that wait for a group.
func (s *spool) head(ctx context.Context, group string, n int) ([]entry, error) {
	var out []entry
	err := each(ctx, s.db, "SELECT "+entryColumns+" FROM spool WHERE grp = ? AND dead = 0 AND sent = 0 ORDER BY later, seq LIMIT ?",
		[]any{group, n}, func(scan func(...any) error) error {
			var e entry
			if err := e.scan(scan); err != nil {
				return err
			}
			out = append(out, e)
			return nil
		})
	return out, err
}

// added is what became of a turn that was to be stored.
type added struct {
	groups []string // that had not had it
	size   size
}

// add waits for the end of what it has begun, whoever gives up meanwhile: a turn
// of which nobody knows that it is there would not be delivered before the next
// start.
func (s *spool) add(ctx context.Context, turns []Turn, now time.Time) (all []added, err error) {
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

func (s *spool) addIn(tx *sqlite.Tx, t *Turn, now time.Time) (a added, err error) {
	said := t.said()
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
		a.groups = append(a.groups, target.Group)
		a.size = a.size.plus(size{1, len(body)})
	}
	return a, nil
}

// missing is what a group does not have of a turn: all of it, or what came
// after the parts that it has; nil when it has everything. said is of the whole
// turn.
func missing(tx *sqlite.Tx, t *Turn, said, group string) (*Turn, error) {
	switch {
	case t.Earlier:
		if cut, err := has(tx, t, cutPrefix+t.ID, said, group); err != nil || cut != hasNone {
			return nil, err
		}
	case !t.Open: // it was answered again, and to the end
		if _, err := tx.Exec("DELETE FROM seen WHERE turn = ? AND grp = ?", cutPrefix+t.ID, group); err != nil {
			return nil, err
		}
	}
	for part := t; ; part = part.rest() {
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
		target.Group, t.Owner, string(target.Scope), t.keyOf(target.Scope))
	if err == nil && t.Session != "" {
		_, err = tx.Exec("INSERT INTO talks VALUES (?, ?, ?, ?) ON CONFLICT DO UPDATE SET at = excluded.at WHERE at < excluded.at",
			graphiti.Talk(t.Session), t.Owner, target.Group, now.Truncate(24*time.Hour).Unix())
	}
	if err == nil && slices.Contains(graphiti.Kinds, t.Kind) {
		_, err = tx.Exec("INSERT INTO promoted VALUES (?) ON CONFLICT DO NOTHING", target.Group)
	}
	return err
}

// promoted are the groups into which something was promoted.
func (s *spool) promoted(ctx context.Context) (map[string]bool, error) {
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

// handOver notes, before it happens, that entries are handed over: should the
// process end now, they are in doubt.
func (s *spool) handOver(_ string, entries []entry) error {
	return s.write("note hand-over", func(tx *sqlite.Tx) error {
		// In the order in which that happens, whatever the clock says.
		var last int64
		err := tx.QueryRow("SELECT coalesce((SELECT sent FROM spool WHERE dead = 0 AND sent > 0 ORDER BY sent DESC LIMIT 1), 0)").Scan(&last)
		if err != nil {
			return err
		}
		for i := range entries {
			last++
			if _, err := tx.Exec("UPDATE spool SET sent = ? WHERE seq = ?", last, entries[i].seq); err != nil {
				return err
			}
		}
		return nil
	})
}

// takeBack notes that entries, which may have been handed over, wait again.
func (s *spool) takeBack(_ string, entries []entry, reason string) error {
	return s.write("note failure", func(tx *sqlite.Tx) error {
		for i := range entries {
			_, err := tx.Exec("UPDATE spool SET sent = 0, attempts = attempts + 1, error = ?, have = ?, losses = ? WHERE seq = ? AND dead = 0",
				reason, entries[i].have, entries[i].losses, entries[i].seq)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// done notes that a group has the entries, and returns what left the spool;
// verified says that they were seen there.
func (s *spool) done(_ string, entries []entry, verified bool, now time.Time) (gone size, err error) {
	err = s.write("note delivery", func(tx *sqlite.Tx) error {
		gone = size{}
		for i := range entries {
			e := &entries[i]
			// Of a part the row knows what was said in the whole turn.
			if _, err := tx.Exec("INSERT INTO seen (turn, grp, at, open, said) SELECT turn, grp, ?, open, said FROM spool WHERE seq = ? ON CONFLICT DO NOTHING",
				now.Unix(), e.seq); err != nil {
				return err
			}
			r, err := tx.Exec("DELETE FROM spool WHERE seq = ?", e.seq)
			if err != nil {
				return err
			}
			if n, err := r.RowsAffected(); err != nil || n == 0 {
				continue // dropped meanwhile
			}
			gone = gone.plus(size{1, e.bytes})
		}
		if err := count(tx, "delivered", gone.turns); err != nil || !verified {
			return err
		}
		return count(tx, "verified", gone.turns)
	})
	return gone, err
}

// bury notes that there will be no further attempt, and returns what became
// dead.
func (s *spool) bury(_ string, e *entry, reason string) (gone size, err error) {
	err = s.write("note refusal", func(tx *sqlite.Tx) error {
		gone = size{}
		r, err := tx.Exec("UPDATE spool SET dead = 1, sent = 0, attempts = attempts + 1, error = ?, have = ?, losses = ? WHERE seq = ? AND dead = 0",
			reason, e.have, e.losses, e.seq)
		if err != nil {
			return err
		}
		if n, err := r.RowsAffected(); err == nil && n > 0 {
			gone = size{1, e.bytes}
		}
		return nil
	})
	return gone, err
}

// moved takes entries out that another spool has now.
func (s *spool) moved(seqs []int64) error {
	if len(seqs) == 0 {
		return nil
	}
	return s.write("note hand-over", func(tx *sqlite.Tx) error {
		for _, seq := range seqs {
			if _, err := tx.Exec("DELETE FROM spool WHERE seq = ?", seq); err != nil {
				return err
			}
		}
		return nil
	})
}

// totals are counts of turns since the file exists.
type totals struct{ delivered, verified, dropped int }

func (s *spool) totals() (t totals, err error) {
	err = each(context.Background(), s.db, "SELECT name, n FROM totals", nil, func(scan func(...any) error) error {
		var name string
		var n int
		if err := scan(&name, &n); err != nil {
			return err
		}
		switch name {
		case "delivered":
			t.delivered = n
		case "verified":
			t.verified = n
		case "dropped":
			t.dropped = n
		}
		return nil
	})
	return t, err
}

func count(tx *sqlite.Tx, name string, n int) error {
	_, err := tx.Exec("UPDATE totals SET n = n + ? WHERE name = ?", n, name)
	return err
}

// instance is the name of this spool among others.
func (s *spool) instance() (id string, err error) {
	if err := s.db.QueryRow(context.Background(), "SELECT id FROM instance", nil, &id); err != nil {
		return "", fmt.Errorf("read spool: %w", err)
	}
	return id, nil
}

func (s *spool) close() error { return s.db.Close() }

func (s *spool) write(what string, fn func(*sqlite.Tx) error) error {
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
