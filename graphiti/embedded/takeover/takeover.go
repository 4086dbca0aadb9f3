// Package takeover owns the removal of the full-text index that an older version of
// the embedded memory had, a table of its file. It is large, and what it held is
// overwritten: done at once, that would keep the start waiting.
//
// It must not know what else is in the file. Of our packages it may import
// cache/sqlite.
package takeover

import (
	"context"
	"sync"

	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
)

// Takeover is a removal, which may be under way.
type Takeover struct {
	db   *sqlite.DB
	stop context.CancelFunc
	done sync.WaitGroup
}

// Of that table so many rows are deleted at a time: writes wait for one step at
// most, and what is smaller is dropped at once.
const (
	blocksAtOnce = 256 // of about 4 KiB
	sizesAtOnce  = 5000
)

// Begin removes the table, in the background where it is large.
func Begin(db *sqlite.DB) (*Takeover, error) {
	ctx, cancel := context.WithCancel(context.Background())
	t := &Takeover{db: db, stop: cancel}
	done, err := t.removeSome(ctx)
	if err == nil && !done {
		// Ends with End, or when nothing is left. Where it fails, the next
		// start tries again.
		t.done.Go(func() {
			for done := false; !done && err == nil; {
				done, err = t.removeSome(ctx)
			}
		})
	}
	return t, err
}

// End ends it. What is left is removed after the next start.
func (t *Takeover) End() {
	t.stop()
	t.Wait()
}

// Wait returns when nothing is left, or it was ended.
func (t *Takeover) Wait() { t.done.Wait() }

// removeSome deletes some of the table, or drops it when little is left, and
// reports whether it is gone.
func (t *Takeover) removeSome(ctx context.Context) (done bool, err error) {
	err = t.db.Write(ctx, func(tx *sqlite.Tx) error {
		var there bool
		if err := tx.QueryRow("SELECT EXISTS (SELECT 1 FROM sqlite_master WHERE name = 'words')").Scan(&there); err != nil || !there {
			done = err == nil
			return err
		}
		deleted := int64(0)
		for _, q := range []struct {
			query string
			most  int
		}{
			// The first ten are the table's own notes, without which it cannot be dropped.
			{"DELETE FROM words_data WHERE id IN (SELECT id FROM words_data WHERE id > 10 LIMIT ?)", blocksAtOnce},
			{"DELETE FROM words_docsize WHERE id IN (SELECT id FROM words_docsize LIMIT ?)", sizesAtOnce},
		} {
			r, err := tx.Exec(q.query, q.most)
			if err != nil {
				return err
			}
			n, err := r.RowsAffected()
			if err != nil {
				return err
			}
			deleted += n / int64(q.most)
		}
		if deleted > 0 {
			return nil
		}
		done = true
		return Drop(tx)
	})
	return done && err == nil, err
}

// Drop drops the table, however large it is.
func Drop(tx *sqlite.Tx) error {
	_, err := tx.Exec("DROP TABLE IF EXISTS words")
	return err
}
