package capture

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"

	"github.com/graphiti-proxy/graphiti-proxy/cache/database"
	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
)

// journal is a file with the turns that wait for a database elsewhere, redacted, in the order of
// arrival. It is safe for concurrent use.
type journal struct {
	db    *sqlite.DB
	turns atomic.Int64 // number of turns
}

// journalBatch is the number of turns that leave the journal in one write.
const journalBatch = 200

func openJournal(path string) (*journal, error) {
	db, err := sqlite.Open(path, sqlite.Options{Schema: "CREATE TABLE turns (seq INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT", Version: 1,
		Sync: sqlite.SyncFull, Holds: "the turns that wait for Postgres"})
	if err != nil {
		return nil, fmt.Errorf("open the journal: %w", err)
	}
	j := &journal{db: db}
	var n int64
	if err := db.QueryRow(context.Background(), "SELECT count(*) FROM turns", nil, &n); err != nil {
		_ = db.Close()
		return nil, fmt.Errorf("read the journal: %w", err)
	}
	j.turns.Store(n)
	return j, nil
}

func (j *journal) close() {
	if j != nil {
		_ = j.db.Close() // its writes are committed
	}
}

// waits reports whether the journal has turns; false if it is nil.
func (j *journal) waits() bool { return j != nil && j.turns.Load() > 0 }

// put appends turns.
func (j *journal) put(turns []ledger.Turn) error {
	err := j.db.Write(context.Background(), func(tx *database.Tx) error {
		for i := range turns {
			body, err := json.Marshal(&turns[i])
			if err == nil {
				_, err = tx.Exec("INSERT INTO turns (body) VALUES (?)", string(body))
			}
			if err != nil {
				return err
			}
		}
		tx.Committed(func() { j.turns.Add(int64(len(turns))) })
		return nil
	})
	if err != nil {
		return fmt.Errorf("write the journal: %w", err)
	}
	return nil
}

// first returns the first turns and the number of the last one.
func (j *journal) first() (turns []ledger.Turn, last int64, err error) {
	err = j.db.Each(context.Background(), "SELECT seq, body FROM turns ORDER BY seq LIMIT ?", []any{journalBatch}, func(scan func(...any) error) error {
		var body []byte
		if err := scan(&last, &body); err != nil {
			return err
		}
		var t ledger.Turn
		if err := json.Unmarshal(body, &t); err != nil {
			return fmt.Errorf("turn %d: %w", last, err)
		}
		turns = append(turns, t)
		return nil
	})
	if err != nil {
		return nil, 0, fmt.Errorf("read the journal: %w", err)
	}
	return turns, last, nil
}

// done removes the turns up to a number.
func (j *journal) done(last int64) error {
	err := j.db.Write(context.Background(), func(tx *database.Tx) error {
		tx.Checkpoint()
		r, err := tx.Exec("DELETE FROM turns WHERE seq <= ?", last)
		if err != nil {
			return err
		}
		n, err := r.RowsAffected()
		tx.Committed(func() { j.turns.Add(-n) })
		return err
	})
	if err != nil {
		return fmt.Errorf("write the journal: %w", err)
	}
	return nil
}
