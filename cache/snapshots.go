package cache

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
)

// Snapshots keeps texts for the beginnings of conversations: one snapshot of each
// session, for when its client drops the history, and lists of the entries of
// cards. It does not read the texts. It is safe for concurrent use.
type Snapshots struct{ store snapshotStore }

const (
	// standingMax is how many entries a list has, the newest ones.
	standingMax = 64

	// standingFor is how long an entry is kept.
	standingFor = 365 * 24 * time.Hour
)

// snapshotStore is where snapshots outlive the process.
type snapshotStore interface {
	readSnapshot(ctx context.Context, session string) ([]byte, error)
	eachSnapshot(ctx context.Context, scopes []string, f func(session string, body []byte) error) error

	// saveSnapshotAsync does not wait.
	saveSnapshotAsync(session string, body []byte, generation int64, scopes []string)

	// forgetSnapshots removes the snapshots and the list entries of a scope.
	forgetSnapshots(ctx context.Context, scope string) error

	readStanding(ctx context.Context, lists []string, f func(list string, entry []byte)) error
	addStanding(ctx context.Context, list string, entry []byte, generation int64, scopes []string) error
}

// Load returns the snapshot of a session; nil when it has none.
func (s *Snapshots) Load(ctx context.Context, session string) ([]byte, error) {
	body, err := s.store.readSnapshot(ctx, session)
	if err != nil {
		return nil, fmt.Errorf("read snapshot: %w", err)
	}
	return body, nil
}

// Save replaces the snapshot of a session, unless one of its scopes has a newer
// generation. It does not wait for the store. The scopes are the groups that hold
// the session's turns, and the session itself. A snapshot keeps the scopes of the
// one that it replaces.
func (s *Snapshots) Save(session string, body []byte, generation int64, scopes ...string) {
	s.store.saveSnapshotAsync(session, body, generation, scopes)
}

// Each calls f for each snapshot that has all of the scopes, in the order of the
// sessions' keys.
func (s *Snapshots) Each(ctx context.Context, f func(session string, body []byte) error, scopes ...string) error {
	if err := s.store.eachSnapshot(ctx, scopes, f); err != nil {
		return fmt.Errorf("read snapshots: %w", err)
	}
	return nil
}

// Add adds an entry to a list, unless one of its scopes has a newer generation. A
// list holds its newest 64 entries, for a year.
func (s *Snapshots) Add(ctx context.Context, list string, entry []byte, generation int64, scopes ...string) error {
	if err := s.store.addStanding(ctx, list, entry, generation, scopes); err != nil {
		return fmt.Errorf("keep what stands on a card: %w", err)
	}
	return nil
}

// Entries calls f for the entries of lists, the newest of each first.
func (s *Snapshots) Entries(ctx context.Context, f func(list string, entry []byte), lists ...string) error {
	if err := s.store.readStanding(ctx, lists, f); err != nil {
		return fmt.Errorf("read what stands on cards: %w", err)
	}
	return nil
}

// Forget removes the snapshots and the list entries that have a scope.
func (s *Snapshots) Forget(ctx context.Context, scope string) error {
	if err := s.store.forgetSnapshots(ctx, scope); err != nil {
		return fmt.Errorf("forget snapshots: %w", err)
	}
	return nil
}

// snapshotFile keeps snapshots in the file of one process.
type snapshotFile struct{ db *sqlite.DB }

func (f snapshotFile) readSnapshot(ctx context.Context, session string) (body []byte, err error) {
	err = f.db.QueryRow(ctx, "SELECT body FROM snapshots WHERE session = ?", []any{session}, &body)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return body, err
}

func (f snapshotFile) eachSnapshot(ctx context.Context, scopes []string, do func(string, []byte) error) error {
	rows, err := f.db.Query(ctx, "SELECT session, body, grps FROM snapshots WHERE instr(grps, ?) > 0 ORDER BY session", listed(scopes[:1]))
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var body []byte
		var session, has string
		if err := rows.Scan(&session, &body, &has); err != nil {
			return err
		}
		if slices.ContainsFunc(scopes, func(scope string) bool { return !strings.Contains(has, listed([]string{scope})) }) {
			continue
		}
		if err := do(session, body); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (f snapshotFile) saveSnapshotAsync(session string, body []byte, generation int64, scopes []string) {
	f.db.WriteAsync(func(tx *sqlite.Tx) error {
		if gone, err := older(tx, generation, scopes); err != nil || gone {
			return err
		}
		var before string
		err := tx.QueryRow("SELECT grps FROM snapshots WHERE session = ?", session).Scan(&before)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
		for had := range strings.SplitSeq(before, ",") {
			if had != "" && !slices.Contains(scopes, had) {
				scopes = append(scopes, had)
			}
		}
		_, err = tx.Exec("INSERT OR REPLACE INTO snapshots (session, body, grps, born) VALUES (?, ?, ?, ?)",
			session, body, listed(scopes), time.Now().Unix())
		return err
	})
}

func (f snapshotFile) forgetSnapshots(ctx context.Context, scope string) error {
	return f.db.Write(ctx, func(tx *sqlite.Tx) error {
		tx.Fold()
		_, err := tx.Exec("DELETE FROM snapshots WHERE instr(grps, ?) > 0", listed([]string{scope}))
		if err == nil {
			_, err = tx.Exec("DELETE FROM standing WHERE instr(grps, ?) > 0", listed([]string{scope}))
		}
		return err
	})
}

func (f snapshotFile) readStanding(ctx context.Context, lists []string, do func(string, []byte)) error {
	args := make([]any, len(lists))
	for i := range lists {
		args[i] = lists[i]
	}
	rows, err := f.db.Query(ctx, "SELECT list, body FROM standing WHERE list IN (?"+strings.Repeat(", ?", len(lists)-1)+") ORDER BY id DESC", args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var list string
		var body []byte
		if err := rows.Scan(&list, &body); err != nil {
			return err
		}
		do(list, body)
	}
	return rows.Err()
}

func (f snapshotFile) addStanding(ctx context.Context, list string, entry []byte, generation int64, scopes []string) error {
	return f.db.Write(ctx, func(tx *sqlite.Tx) error {
		if gone, err := older(tx, generation, scopes); err != nil || gone {
			return err
		}
		_, err := tx.Exec("INSERT INTO standing (list, body, grps, born) VALUES (?, ?, ?, ?)", list, entry, listed(scopes), time.Now().Unix())
		if err == nil {
			_, err = tx.Exec("DELETE FROM standing WHERE list = ? AND id <= (SELECT id FROM standing WHERE list = ? ORDER BY id DESC LIMIT 1 OFFSET ?)", list, list, standingMax)
		}
		return err
	})
}
