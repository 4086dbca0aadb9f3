package capture

import (
	"context"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
)

// dropChunk is how many entries are dropped in one transaction.
const dropChunk = 1000

// dropped is what was removed from the spool.
type dropped struct{ pending, dead size }

// dropOldest removes n entries: of the dead, while there are some, else of
// those that wait, the oldest first.
func (s *spool) dropOldest(n int) (dropped, error) {
	return s.drop("SELECT seq FROM spool ORDER BY dead DESC, seq LIMIT ?", n)
}

// dropBefore removes the entries that came in before t, up to dropChunk of
// them. Entries come in by time, so that only the first need be looked at.
func (s *spool) dropBefore(t time.Time) (dropped, error) {
	return s.drop("SELECT seq FROM (SELECT seq, born FROM spool ORDER BY seq LIMIT 1000) WHERE born < ?", t.UnixMilli())
}

// dropDead removes the dead of those numbers, or all when there are none.
func (s *spool) dropDead(numbers []int64) (d dropped, err error) {
	err = s.write("drop from spool", func(tx *sqlite.Tx) error {
		d = dropped{}
		err := forDead(tx, "DELETE FROM spool WHERE dead = 1 AND (?1 OR seq = ?2) RETURNING dead, bytes", numbers, d.row)
		if err != nil {
			return err
		}
		return count(tx, "dropped", d.dead.turns)
	})
	return d, err
}

func (s *spool) drop(which string, arg any) (d dropped, err error) {
	err = s.write("drop from spool", func(tx *sqlite.Tx) error {
		d = dropped{}
		if err := rowsIn(tx, "DELETE FROM spool WHERE seq IN ("+which+") RETURNING dead, bytes", []any{arg}, d.row); err != nil {
			return err
		}
		return count(tx, "dropped", d.pending.turns+d.dead.turns)
	})
	return d, err
}

// row adds a removed row.
func (d *dropped) row(scan func(...any) error) error {
	var dead bool
	one := size{turns: 1}
	if err := scan(&dead, &one.bytes); err != nil {
		return err
	}
	if dead {
		d.dead = d.dead.plus(one)
	} else {
		d.pending = d.pending.plus(one)
	}
	return nil
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

// forgetSeen forgets the delivered turns that need not be remembered any more.
func (s *spool) forgetSeen(now time.Time, most int) error {
	return s.write("forget delivered turns", func(tx *sqlite.Tx) error {
		_, err := tx.Exec(`DELETE FROM seen WHERE at < ?1 OR at <= (SELECT at FROM seen ORDER BY at DESC LIMIT 1 OFFSET ?2)`,
			now.Add(-seenFor).Unix(), most)
		return err
	})
}
