package capture

import (
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

//go:embed schema.sql
var schema string

// seenFor is how long a delivered turn is remembered. Clients resend their
// history, but hardly that of last season.
const seenFor = 90 * 24 * time.Hour

// spool is the file in which turns wait. Its methods may be called from
// several goroutines; what they leave behind is committed.
type spool struct{ db *sqlite.DB }

// entry is a turn that waits for one group.
type entry struct {
	seq      int64
	scope    graphiti.Scope
	bytes    int
	attempts int
	turn     Turn
}

func openSpool(path string) (*spool, error) {
	db, err := sqlite.Open(path, sqlite.Options{Migrations: []string{schema}, Sync: sqlite.SyncFull})
	if err != nil {
		return nil, fmt.Errorf("open spool: %w", err)
	}
	return &spool{db}, nil
}

// backlog is what waits for one group.
type backlog struct {
	turns int
	bytes int
}

// load counts what waits, by group, and the dead.
func (s *spool) load() (map[string]backlog, int, error) {
	rows, err := s.db.Query(context.Background(), "SELECT grp, dead, count(*), sum(length(body)) FROM spool GROUP BY grp, dead")
	if err != nil {
		return nil, 0, fmt.Errorf("read spool: %w", err)
	}
	defer rows.Close()
	groups, deadCount := make(map[string]backlog), 0
	for rows.Next() {
		var group string
		var dead, n, size int
		if err := rows.Scan(&group, &dead, &n, &size); err != nil {
			return nil, 0, fmt.Errorf("read spool: %w", err)
		}
		if dead != 0 {
			deadCount += n
		} else {
			groups[group] = backlog{n, size}
		}
	}
	if err := rows.Err(); err != nil {
		return nil, 0, fmt.Errorf("read spool: %w", err)
	}
	return groups, deadCount, nil
}

// add stores a turn for each of its groups that has not had it, and returns
// those groups and the bytes for each.
func (s *spool) add(ctx context.Context, t *Turn, now time.Time) (groups []string, bytes int, err error) {
	body, err := json.Marshal(t)
	if err != nil {
		return nil, 0, fmt.Errorf("spool turn: %w", err)
	}
	err = s.db.Write(ctx, func(tx *sqlite.Tx) error {
		groups = groups[:0]
		for _, target := range t.Targets {
			r, err := tx.Exec(`INSERT INTO spool (turn, grp, scope, body, born)
				SELECT ?1, ?2, ?3, ?4, ?5 WHERE NOT EXISTS (SELECT 1 FROM seen WHERE turn = ?1 AND grp = ?2)
				ON CONFLICT DO NOTHING`, t.ID, target.Group, string(target.Scope), string(body), now.UnixMilli())
			if err != nil {
				return err
			}
			if n, err := r.RowsAffected(); err == nil && n > 0 {
				groups = append(groups, target.Group)
			}
		}
		return nil
	})
	if err != nil {
		return nil, 0, fmt.Errorf("spool turn: %w", err)
	}
	return groups, len(body), nil
}

// head returns the first n entries that wait for a group.
func (s *spool) head(ctx context.Context, group string, n int) ([]entry, error) {
	rows, err := s.db.Query(ctx,
		"SELECT seq, scope, body, attempts FROM spool WHERE grp = ? AND dead = 0 ORDER BY seq LIMIT ?", group, n)
	if err != nil {
		return nil, fmt.Errorf("read spool: %w", err)
	}
	defer rows.Close()
	var out []entry
	for rows.Next() {
		var e entry
		var body []byte
		if err := rows.Scan(&e.seq, &e.scope, &body, &e.attempts); err != nil {
			return nil, fmt.Errorf("read spool: %w", err)
		}
		if err := json.Unmarshal(body, &e.turn); err != nil {
			return nil, fmt.Errorf("read spool: entry %d: %w", e.seq, err)
		}
		e.bytes = len(body)
		out = append(out, e)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("read spool: %w", err)
	}
	return out, nil
}

// done notes that a group has the entries.
func (s *spool) done(group string, entries []entry, now time.Time) error {
	return s.write("note delivery", func(tx *sqlite.Tx) error {
		for i := range entries {
			if _, err := tx.Exec("INSERT INTO seen VALUES (?, ?, ?) ON CONFLICT DO NOTHING", entries[i].turn.ID, group, now.Unix()); err != nil {
				return err
			}
			if _, err := tx.Exec("DELETE FROM spool WHERE seq = ?", entries[i].seq); err != nil {
				return err
			}
		}
		return nil
	})
}

// failed notes an attempt that came to nothing; dead that there will be none
// after it.
func (s *spool) failed(entries []entry, reason string, dead bool) error {
	return s.write("note failure", func(tx *sqlite.Tx) error {
		for i := range entries {
			if _, err := tx.Exec("UPDATE spool SET attempts = attempts + 1, error = ?, dead = ? WHERE seq = ?", reason, dead, entries[i].seq); err != nil {
				return err
			}
		}
		return nil
	})
}

// dropOldest removes the n oldest waiting entries, and returns what was
// removed by group.
func (s *spool) dropOldest(n int) (map[string]backlog, error) {
	return s.drop("SELECT seq FROM spool WHERE dead = 0 ORDER BY seq LIMIT ?", n)
}

// dropBefore removes the waiting entries that are older than t.
func (s *spool) dropBefore(t time.Time) (map[string]backlog, error) {
	return s.drop("SELECT seq FROM spool WHERE dead = 0 AND born < ?", t.UnixMilli())
}

func (s *spool) drop(which string, arg any) (map[string]backlog, error) {
	var gone map[string]backlog
	err := s.write("drop from spool", func(tx *sqlite.Tx) error {
		gone = make(map[string]backlog)
		rows, err := tx.Query("DELETE FROM spool WHERE seq IN ("+which+") RETURNING grp, length(body)", arg)
		if err != nil {
			return err
		}
		defer rows.Close()
		for rows.Next() {
			var group string
			var size int
			if err := rows.Scan(&group, &size); err != nil {
				return err
			}
			b := gone[group]
			gone[group] = backlog{b.turns + 1, b.bytes + size}
		}
		return rows.Err()
	})
	return gone, err
}

// oldest is when the oldest waiting entry came in; zero when none waits.
func (s *spool) oldest() (time.Time, error) {
	var born int64
	err := s.db.QueryRow(context.Background(), "SELECT coalesce((SELECT born FROM spool WHERE dead = 0 ORDER BY seq LIMIT 1), 0)", nil, &born)
	if err != nil || born == 0 {
		return time.Time{}, err
	}
	return time.UnixMilli(born), nil
}

func (s *spool) forgetSeen(now time.Time) error {
	return s.write("forget delivered turns", func(tx *sqlite.Tx) error {
		_, err := tx.Exec("DELETE FROM seen WHERE at < ?", now.Add(-seenFor).Unix())
		return err
	})
}

func (s *spool) write(what string, fn func(*sqlite.Tx) error) error {
	if err := s.db.Write(context.Background(), fn); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}
