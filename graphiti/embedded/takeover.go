package embedded

import (
	"context"
	"sync"

	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
)

// takeover removes the full-text index of an older version, which was a table
// of the file. It is large, and what it held is overwritten: done at once, that
// would keep the start waiting.
type takeover struct {
	stop context.CancelFunc
	done sync.WaitGroup
}

// Of that table so many rows are deleted at a time: writes wait for one step at
// most, and what is smaller is dropped at once.
const (
	blocksAtOnce = 256 // of about 4 KiB
	sizesAtOnce  = 5000
)

// removeOldIndex removes the table, in the background where it is large.
func (e *Store) removeOldIndex() error {
	ctx, cancel := context.WithCancel(context.Background())
	e.old.stop = cancel
	done, err := e.removeSome(ctx)
	if err == nil && !done {
		// Ends with Close, or when nothing is left. Where it fails, the next
		// start tries again.
		e.old.done.Go(func() {
			for done := false; !done && err == nil; {
				done, err = e.removeSome(ctx)
			}
		})
	}
	return err
}

func (t *takeover) end() {
	t.stop()
	t.done.Wait()
}

// removeSome deletes some of the table, or drops it when little is left, and
// reports whether it is gone.
func (e *Store) removeSome(ctx context.Context) (done bool, err error) {
	err = e.db.Write(ctx, func(tx *sqlite.Tx) error {
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
		return dropOldIndex(tx)
	})
	return done && err == nil, err
}

// dropOldIndex drops the table, however large it is.
func dropOldIndex(tx *sqlite.Tx) error {
	_, err := tx.Exec("DROP TABLE IF EXISTS words")
	return err
}
