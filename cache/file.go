package cache

import (
	"context"
	"database/sql"
	_ "embed"
	"errors"
	"fmt"
	"slices"
	"strings"
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

//go:embed schema_5.sql
var schema5 string

//go:embed schema_6.sql
var schema6 string

const (
	// sweepInterval is how often expired state is removed.
	sweepInterval = 10 * time.Minute

	// sweepRows bounds how much one sweep removes at a time, so that the
	// request that comes in between does not wait for it.
	sweepRows = 1000
)

// file is the store of one process.
type file struct {
	db         *sqlite.DB
	ttl        time.Duration
	stop, done chan struct{}
}

func openFile(path string, ttl time.Duration) (*file, error) {
	// A commit survives the end of the process. The end of the machine may
	// take the last moment with it, which costs those conversations their
	// newest block and nothing else; a request does not wait for the disk.
	db, err := sqlite.Open(path, sqlite.Options{Migrations: []string{schema1, schema2, schema3, schema4, schema5, schema6}, Sync: sqlite.SyncNormal,
		Holds: "the blocks that running conversations were given, which session they belong to, and which memory is still to be forgotten"})
	if err != nil {
		return nil, fmt.Errorf("open state: %w", err)
	}
	f := &file{db: db, ttl: ttl, stop: make(chan struct{}), done: make(chan struct{})}
	// Ends when close closes stop.
	go f.sweepLoop()
	return f, nil
}

func (f *file) shared() bool { return false }

func (f *file) close() error {
	close(f.stop)
	<-f.done
	return f.db.Close()
}

// in is the rest of a query for some keys, and its arguments.
func in(keys [][16]byte) (string, []any) {
	args := make([]any, len(keys))
	for i := range keys {
		args[i] = keys[i][:]
	}
	return "(?" + strings.Repeat(",?", len(args)-1) + ")", args
}

// positions tells where each key stands.
func positions(keys [][16]byte) map[[16]byte]int {
	at := make(map[[16]byte]int, len(keys))
	for i := range keys {
		at[keys[i]] = i
	}
	return at
}

func (f *file) readBlocks(ctx context.Context, keys [][16]byte, found func(int, block)) error {
	rest, args := in(keys)
	rows, err := f.db.Query(ctx, "SELECT key, block, facts, iif(since > 0, since, born * 1000000) FROM blocks WHERE key IN "+rest, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	at := positions(keys)
	for rows.Next() {
		var key []byte
		var since int64
		b := block{known: true}
		if err := rows.Scan(&key, &b.text, &b.facts, &since); err != nil {
			return err
		}
		b.since = time.UnixMicro(since)
		found(at[[16]byte(key)], b)
	}
	return rows.Err()
}

func (f *file) keepBlock(ctx context.Context, key [16]byte, b block, groups []string) (block, error) {
	err := f.db.Write(ctx, func(tx *sqlite.Tx) error {
		if err := ctx.Err(); err != nil {
			return err // nobody waits for it: the request has gone without
		}
		if gone, err := cleared(tx, b.since, groups...); err != nil {
			return err
		} else if gone {
			b, groups = b.without(), nil
		}
		r, err := tx.Exec("INSERT INTO blocks (key, block, facts, born, grps, since) VALUES (?, ?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
			key[:], b.text, b.facts, time.Now().Unix(), listed(groups), b.since.UnixMicro())
		if err != nil {
			return err
		}
		if n, err := r.RowsAffected(); err != nil || n == 1 {
			return err
		}
		var since int64
		err = tx.QueryRow("SELECT block, facts, since FROM blocks WHERE key = ?", key[:]).Scan(&b.text, &b.facts, &since)
		b.since = time.UnixMicro(since)
		return err
	})
	return b, err
}

// setCleared notes when something was forgotten.
func setCleared(tx *sqlite.Tx, what string) error {
	_, err := tx.Exec("INSERT INTO cleared VALUES (?, ?) ON CONFLICT DO UPDATE SET at = excluded.at", what, time.Now().UnixMicro())
	return err
}

// cleared reports whether any of some things was forgotten since.
func cleared(tx *sqlite.Tx, since time.Time, things ...string) (found bool, err error) {
	for _, what := range things {
		err := tx.QueryRow("SELECT EXISTS (SELECT 1 FROM cleared WHERE what = ? AND at >= ?)", what, since.UnixMicro()).Scan(&found)
		if err != nil || found {
			return found, err
		}
	}
	return false, nil
}

// listed are groups as they are found again by one of them.
func listed(groups []string) string { return "," + strings.Join(groups, ",") + "," }

func (f *file) emptyBlock(key [16]byte) error {
	return f.db.Write(context.Background(), func(tx *sqlite.Tx) error {
		tx.Fold()
		_, err := tx.Exec("UPDATE blocks SET block = '' WHERE key = ?", key[:])
		return err
	})
}

func (f *file) forgetBlocks(group string) (n int, err error) {
	err = f.db.Write(context.Background(), func(tx *sqlite.Tx) error {
		tx.Fold()
		if err := setCleared(tx, group); err != nil {
			return err
		}
		r, err := tx.Exec("UPDATE blocks SET block = '' WHERE block <> '' AND (grps = '' OR instr(grps, ?) > 0)", listed([]string{group}))
		if err != nil {
			return err
		}
		emptied, err := r.RowsAffected()
		n = int(emptied)
		return err
	})
	return n, err
}

func (f *file) countEmptied(ctx context.Context) (n int, err error) {
	return n, f.db.QueryRow(ctx, "SELECT count(*) FROM blocks WHERE block = '' AND (facts > 0 OR facts < -1)", nil, &n)
}

func (f *file) readLinks(ctx context.Context, fingerprints [][16]byte, found func(int, string)) error {
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

func (f *file) putLink(ctx context.Context, fingerprint [16]byte, session string) error {
	return f.db.Write(ctx, putLink(fingerprint, session))
}

func (f *file) putLinkLater(fingerprint [16]byte, session string) {
	f.db.Later(putLink(fingerprint, session))
}

func putLink(fingerprint [16]byte, session string) func(*sqlite.Tx) error {
	return func(tx *sqlite.Tx) error {
		_, err := tx.Exec("INSERT INTO chain VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET session = excluded.session, born = excluded.born",
			fingerprint[:], session, time.Now().Unix())
		return err
	}
}

// maxPending bounds what is read of conversations without an answer.
const maxPending = 10000

// loadPending calls found for the conversations that an earlier process left
// without an answer: their clients will ask again.
func (f *file) loadPending(now time.Time, found func(fingerprint [16]byte, session string, until time.Time)) error {
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

// readPending finds none: all of them are in memory.
func (f *file) readPending(context.Context, [][16]byte, func(int, string)) error { return nil }

func (f *file) setPending(_ context.Context, fingerprint [16]byte, session string, until time.Time) {
	f.db.Later(func(tx *sqlite.Tx) error {
		_, err := tx.Exec("INSERT INTO pending VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET session = excluded.session, until = excluded.until",
			fingerprint[:], session, until.Unix())
		return err
	})
}

func (f *file) endPendingLater(fingerprint [16]byte) {
	f.db.Later(func(tx *sqlite.Tx) error {
		_, err := tx.Exec("DELETE FROM pending WHERE fingerprint = ?", fingerprint[:])
		return err
	})
}

func (f *file) readSnapshot(ctx context.Context, session string) (body []byte, err error) {
	err = f.db.QueryRow(ctx, "SELECT body FROM snapshots WHERE session = ?", []any{session}, &body)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	return body, err
}

func (f *file) eachSnapshot(ctx context.Context, marks []string, do func([]byte) error) error {
	rows, err := f.db.Query(ctx, "SELECT body, grps FROM snapshots WHERE instr(grps, ?) > 0 ORDER BY born", listed(marks[:1]))
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		var body []byte
		var has string
		if err := rows.Scan(&body, &has); err != nil {
			return err
		}
		if slices.ContainsFunc(marks, func(m string) bool { return !strings.Contains(has, listed([]string{m})) }) {
			continue
		}
		if err := do(body); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (f *file) saveSnapshotLater(session string, body []byte, since time.Time, marks []string) {
	f.db.Later(func(tx *sqlite.Tx) error {
		if gone, err := cleared(tx, since, marks...); err != nil || gone {
			return err
		}
		_, err := tx.Exec("INSERT OR REPLACE INTO snapshots (session, body, grps, born) VALUES (?, ?, ?, ?)",
			session, body, listed(marks), time.Now().Unix())
		return err
	})
}

func (f *file) forgetSnapshots(mark string) error {
	return f.db.Write(context.Background(), func(tx *sqlite.Tx) error {
		tx.Fold()
		if err := setCleared(tx, mark); err != nil {
			return err
		}
		_, err := tx.Exec("DELETE FROM snapshots WHERE instr(grps, ?) > 0", listed([]string{mark}))
		return err
	})
}

func (f *file) readAccepted(ctx context.Context, tenant string) (day int64, err error) {
	err = f.db.QueryRow(ctx, "SELECT at FROM accepted WHERE tenant = ?", []any{tenant}, &day)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, nil
	}
	return day, err
}

func (f *file) acceptLater(tenant string, day int64) {
	f.db.Later(func(tx *sqlite.Tx) error {
		if _, err := tx.Exec("INSERT INTO accepted VALUES (?, ?) ON CONFLICT DO UPDATE SET at = excluded.at", tenant, day); err != nil {
			return err
		}
		_, err := tx.Exec("DELETE FROM accepted WHERE tenant IN (SELECT tenant FROM accepted ORDER BY at DESC, tenant LIMIT -1 OFFSET ?)", maxTenants)
		return err
	})
}

func (f *file) sweepLoop() {
	defer close(f.done)
	t := time.NewTicker(sweepInterval)
	defer t.Stop()
	for {
		select {
		case <-f.stop:
			return
		case now := <-t.C:
			for f.sweep(now.Add(-f.ttl)) {
			}
			f.db.Later(func(tx *sqlite.Tx) error {
				_, err := tx.Exec("DELETE FROM pending WHERE until < ?", now.Unix())
				if err == nil {
					_, err = tx.Exec("DELETE FROM cleared WHERE at < ?", now.Add(-f.ttl).UnixMicro())
				}
				return err
			})
		}
	}
}

// sweep removes some of what is older than before, and reports whether there
// may be more.
func (f *file) sweep(before time.Time) bool {
	more := false
	err := f.db.Write(context.Background(), func(tx *sqlite.Tx) error {
		for _, q := range []string{
			"DELETE FROM blocks WHERE key IN (SELECT key FROM blocks WHERE born < ? LIMIT ?)",
			"DELETE FROM chain WHERE fingerprint IN (SELECT fingerprint FROM chain WHERE born < ? LIMIT ?)",
			"DELETE FROM snapshots WHERE session IN (SELECT session FROM snapshots WHERE born < ? LIMIT ?)",
		} {
			r, err := tx.Exec(q, before.Unix(), sweepRows)
			if err != nil {
				return err
			}
			if n, err := r.RowsAffected(); err == nil && n == sweepRows {
				more = true
			}
		}
		return nil
	})
	return err == nil && more
}
