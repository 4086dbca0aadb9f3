package cache

import (
	"context"
	_ "embed"
	"errors"
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

// sweepInterval is how often expired state is removed.
const sweepInterval = 10 * time.Minute

// sweepRows bounds how much one sweep removes at a time, so that the request
// that comes in between does not wait for it.
const sweepRows = 1000

// State is the file in which blocks and sessions outlive the process.
type State struct {
	db     *sqlite.DB
	ttl    time.Duration
	Blocks *Blocks
	Chain  *Chain

	Snapshots *Snapshots

	stop, done chan struct{}
}

// OpenState opens the file at path. What was not used for ttl is removed.
func OpenState(path string, ttl time.Duration) (*State, error) {
	// A commit survives the end of the process. The end of the machine may
	// take the last moment with it, which costs those conversations their
	// newest block and nothing else; a request does not wait for the disk.
	db, err := sqlite.Open(path, sqlite.Options{Migrations: []string{schema1, schema2, schema3}, Sync: sqlite.SyncNormal})
	if err != nil {
		return nil, fmt.Errorf("open state: %w", err)
	}
	s := &State{
		db:        db,
		ttl:       ttl,
		Blocks:    &Blocks{db: db, recent: newRecent[[16]byte, block](blocksInMemory)},
		Snapshots: &Snapshots{db},
		Chain:     &Chain{db: db, later: db.Later, recent: newRecent[[16]byte, link](linksInMemory)},
		stop:      make(chan struct{}),
		done:      make(chan struct{}),
	}
	if err := s.Chain.loadPending(time.Now()); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	// Ends when Close closes stop.
	go s.sweepLoop()
	return s, nil
}

// Close stops the sweeping and closes the file.
func (s *State) Close() error {
	close(s.stop)
	<-s.done
	return s.db.Close()
}

func (s *State) sweepLoop() {
	defer close(s.done)
	t := time.NewTicker(sweepInterval)
	defer t.Stop()
	for {
		select {
		case <-s.stop:
			return
		case now := <-t.C:
			for s.sweep(now.Add(-s.ttl)) {
			}
			s.Chain.sweepPending(now)
		}
	}
}

// sweep removes some of what is older than before, and reports whether there
// may be more.
func (s *State) sweep(before time.Time) bool {
	more := false
	err := s.db.Write(context.Background(), func(tx *sqlite.Tx) error {
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
