package cache

import (
	"context"
	_ "embed"
	"fmt"
	"sync"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
)

//go:embed schema.sql
var schema string

const (
	// sweepInterval is how often expired state is removed.
	sweepInterval = 10 * time.Minute

	// sweepRows bounds the rows that one transaction of a sweep removes, so that
	// requests do not wait for it.
	sweepRows = 1000

	// floorsFor is how long the generation of a scope is kept at least: nothing
	// that is older is still to be written.
	floorsFor = 90 * 24 * time.Hour
)

// file is the state of one process, on disk.
type file struct {
	db         *sqlite.DB
	ttl        time.Duration
	decided    decidedKeys
	stop, done chan struct{}
	cancel     context.CancelFunc
	reading    sync.WaitGroup
}

func openFile(path string, ttl time.Duration) (*file, error) {
	// A commit survives the end of the process. The end of the machine may
	// take the last moment with it, which costs those conversations their
	// newest block and nothing else; a request does not wait for the disk.
	db, err := sqlite.Open(path, sqlite.Options{Schema: schema, Version: 1, Sync: sqlite.SyncNormal,
		Holds: "the blocks that running conversations were given, which session they belong to, which memory is still to be forgotten, and whose memory the keys and identities of registered people belong to"})
	if err != nil {
		return nil, fmt.Errorf("open state: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	f := &file{db: db, ttl: ttl, stop: make(chan struct{}), done: make(chan struct{}), cancel: cancel}
	// Both end with close.
	go f.sweepLoop()
	f.reading.Go(func() { f.decided.Read(ctx, db) })
	return f, nil
}

func (f *file) close() error {
	f.cancel()
	close(f.stop)
	<-f.done
	f.reading.Wait()
	return f.db.Close()
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
			f.db.WriteAsync(func(tx *sqlite.Tx) error {
				_, err := tx.Exec("DELETE FROM pending WHERE until < ?", now.Unix())
				if err == nil {
					_, err = tx.Exec("DELETE FROM floors WHERE born < ?", now.Add(-max(f.ttl, floorsFor)).Unix())
				}
				if err == nil {
					_, err = tx.Exec("DELETE FROM standing WHERE born < ?", now.Add(-standingFor).Unix())
				}
				return err
			})
		}
	}
}

// sweep removes up to sweepRows rows of each table that are older than before, and
// reports whether there may be more.
func (f *file) sweep(before time.Time) bool {
	more := false
	err := f.db.Write(context.Background(), func(tx *sqlite.Tx) error {
		for _, q := range []string{
			"DELETE FROM decisions WHERE key IN (SELECT key FROM decisions WHERE born < ? LIMIT ?)",
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
