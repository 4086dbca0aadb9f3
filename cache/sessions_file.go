package cache

import (
	"context"
	"fmt"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
)

// sessionFile keeps sessions in the file of one process.
type sessionFile struct{ db *sqlite.DB }

func (f sessionFile) shared() bool { return false }

func (f sessionFile) readLinks(ctx context.Context, fingerprints [][16]byte, found func(int, string)) error {
	rest, args := in(fingerprints)
	rows, err := f.db.Query(ctx, "SELECT fingerprint, session FROM chain WHERE fingerprint IN "+rest, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	at := positions(fingerprints)
	for rows.Next() {
		var key []byte
		var session string
		if err := rows.Scan(&key, &session); err != nil {
			return err
		}
		found(at[[16]byte(key)], session)
	}
	return rows.Err()
}

func (f sessionFile) putLink(ctx context.Context, fingerprint [16]byte, session string) error {
	return f.db.Write(ctx, putLink(fingerprint, session))
}

func (f sessionFile) putLinkAsync(fingerprint [16]byte, session string) {
	f.db.WriteAsync(putLink(fingerprint, session))
}

func putLink(fingerprint [16]byte, session string) func(*sqlite.Tx) error {
	return func(tx *sqlite.Tx) error {
		_, err := tx.Exec("INSERT INTO chain VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET session = excluded.session, born = excluded.born",
			fingerprint[:], session, time.Now().Unix())
		return err
	}
}

// maxPending bounds the conversations without an answer that are read at a start.
const maxPending = 10000

// loadPending calls found for the conversations that an earlier process left
// without an answer: their clients will ask again.
func (f sessionFile) loadPending(now time.Time, found func(fingerprint [16]byte, session string, until time.Time)) error {
	rows, err := f.db.Query(context.Background(), "SELECT fingerprint, session, until FROM pending WHERE until > ? ORDER BY until DESC LIMIT ?", now.Unix(), maxPending)
	if err != nil {
		return fmt.Errorf("read sessions: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var key []byte
		var session string
		var until int64
		if err := rows.Scan(&key, &session, &until); err != nil {
			return fmt.Errorf("read sessions: %w", err)
		}
		if len(key) == 16 {
			found([16]byte(key), session, time.Unix(until, 0))
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read sessions: %w", err)
	}
	return nil
}

// readPending finds none: Sessions has all of them in RAM.
func (f sessionFile) readPending(context.Context, [][16]byte, func(int, string)) error { return nil }

func (f sessionFile) setPending(_ context.Context, fingerprint [16]byte, session string, until time.Time) {
	f.db.WriteAsync(func(tx *sqlite.Tx) error {
		_, err := tx.Exec("INSERT INTO pending VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET session = excluded.session, until = excluded.until",
			fingerprint[:], session, until.Unix())
		return err
	})
}

func (f sessionFile) endPendingAsync(fingerprint [16]byte) {
	f.db.WriteAsync(func(tx *sqlite.Tx) error {
		_, err := tx.Exec("DELETE FROM pending WHERE fingerprint = ?", fingerprint[:])
		return err
	})
}

// positions returns the index of each key.
func positions(keys [][16]byte) map[[16]byte]int {
	at := make(map[[16]byte]int, len(keys))
	for i := range keys {
		at[keys[i]] = i
	}
	return at
}
