package cache

import (
	"bytes"
	"context"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/database"
)

const (
	// A sweep reads all tables, because an index by age would cost a page in each write. The
	// first one comes firstSweep after the start, and later ones at sweepPart of the ttl.
	firstSweep = 10 * time.Minute
	sweepPart  = 30

	// sweepRows is the most records that one transaction removes: requests wait for it.
	sweepRows = 2000
)

func (f *tables) sweepLoop(ctx context.Context) {
	defer close(f.done)
	t := time.NewTimer(firstSweep)
	defer t.Stop()
	for {
		select {
		case <-f.stop:
			return
		case now := <-t.C:
			for f.sweep(ctx, now) {
			}
			t.Reset(f.ttl / sweepPart)
		}
	}
}

// sweep removes up to sweepRows expired records of each kind, and reports whether there may
// be more.
func (f *tables) sweep(ctx context.Context, now time.Time) (more bool) {
	for _, k := range kinds {
		before := now.Add(-k.lives(f.ttl)).UnixMicro()
		var old []record
		err := f.each(ctx, "SELECT list, key, '' FROM "+k.name+" WHERE born < ? LIMIT ?", []any{before, sweepRows}, func(list string, key, _ []byte) error {
			old = append(old, record{list: list, key: bytes.Clone(key)})
			return nil
		})
		if err == nil && len(old) > 0 {
			err = f.db.Write(ctx, func(tx *database.Tx) error {
				for i := range old {
					if _, err := tx.Exec("DELETE FROM "+k.name+" WHERE list = ? AND key = ? AND born < ?", old[i].list, old[i].key, before); err != nil {
						return err
					}
				}
				return nil
			})
		}
		more = more || err == nil && len(old) == sweepRows
	}
	return more
}
