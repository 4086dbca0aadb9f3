package ledger

import (
	"context"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
)

// DropChunk is the most entries dropped in one transaction.
const DropChunk = 1000

// Dropped is the size of the turns that left the queue without delivery.
type Dropped struct{ Pending, Dead Size }

// All returns the sum of both sizes.
func (d Dropped) All() Size { return d.Pending.Plus(d.Dead) }

// The state of a waiting turn, and the states after the queue.
const (
	pending   = "pending"
	delivered = "delivered"
	dropped   = "dropped"
	forgotten = "forgotten"
)

// settle takes turns out of the queue and deletes their texts. It returns the size of the
// turns that were still queued.
func settle(tx *sqlite.Tx, numbers []int64, state string, now time.Time) (gone Size, err error) {
	const chosen = "seq IN (SELECT value FROM json_each(?1)) AND " + queued
	list := listOf(numbers)
	if err := tx.QueryRow("SELECT count(*), coalesce(sum(bytes), 0) FROM turns WHERE "+chosen, list).Scan(&gone.Turns, &gone.Bytes); err != nil {
		return gone, err
	}
	return gone, run(tx, `UPDATE turns SET state = ?2, open = open AND ?2 <> 'forgotten', at = ?3, bytes = 0, scope = '', backfill = 0, sent = 0,
		have = 0, losses = 0, attempts = 0, error = '', body = '' WHERE `+chosen, list, state, now.UnixMilli())
}

// leaving collects the turns that one transaction takes out of the queue.
type leaving struct {
	Dropped
	seqs []int64
	more func() bool // reports whether to collect more; nil collects all
}

// find adds the turns that a query returns as number, dead flag and bytes.
func (l *leaving) find(tx *sqlite.Tx, query string, args ...any) error {
	rows, err := tx.Query(query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() && (l.more == nil || l.more()) {
		var seq int64
		var dead bool
		one := Size{Turns: 1}
		if err := rows.Scan(&seq, &dead, &one.Bytes); err != nil {
			return err
		}
		l.seqs = append(l.seqs, seq)
		if dead {
			l.Dead = l.Dead.Plus(one)
		} else {
			l.Pending = l.Pending.Plus(one)
		}
	}
	return rows.Err()
}

// settle takes the collected turns out of the queue.
func (l *leaving) settle(tx *sqlite.Tx, state string, now time.Time) error {
	_, err := settle(tx, l.seqs, state, now)
	return err
}

// drop drops the turns that find collects. A client's history cannot add dropped turns
// again.
func (s *Ledger) drop(find func(tx *sqlite.Tx, l *leaving) error) (d Dropped, err error) {
	err = s.write("drop turns", func(tx *sqlite.Tx) error {
		var l leaving
		if err := find(tx, &l); err != nil {
			return err
		}
		d = l.Dropped
		if err := l.settle(tx, dropped, time.Now()); err != nil {
			return err
		}
		return count(tx, "dropped", len(l.seqs))
	})
	return d, err
}

// An index covers each order, so that a cut reads only the rows it takes.
const (
	oldestDead    = "SELECT seq, 1, bytes FROM turns WHERE state = 'dead' ORDER BY seq"
	oldestWaiting = "SELECT seq, 0, bytes FROM turns WHERE " + queued + " AND state <> 'dead' ORDER BY seq"
)

// Cut drops the excess turns and bytes: first dead turns, then waiting ones, oldest first,
// and at most DropChunk.
func (s *Ledger) Cut(over Size) (Dropped, error) {
	return s.drop(func(tx *sqlite.Tx, l *leaving) error {
		l.more = func() bool {
			left := over.Minus(l.All())
			return len(l.seqs) < DropChunk && (left.Turns > 0 || left.Bytes > 0)
		}
		if err := l.find(tx, oldestDead); err != nil {
			return err
		}
		return l.find(tx, oldestWaiting)
	})
}

// DropBefore drops entries that arrived before t, up to DropChunk. Entries are ordered by
// arrival, so it reads only the first ones.
func (s *Ledger) DropBefore(t time.Time) (Dropped, error) {
	const old = `SELECT seq, dead, bytes FROM
		(SELECT seq, state = 'dead' AS dead, bytes, at FROM turns WHERE ` + queued + ` ORDER BY seq LIMIT 1000) WHERE at < ?`
	return s.drop(func(tx *sqlite.Tx, l *leaving) error { return l.find(tx, old, t.UnixMilli()) })
}

// DropDead drops the dead turns with the numbers, or all if numbers is empty.
func (s *Ledger) DropDead(numbers []int64) (Dropped, error) {
	return s.drop(func(tx *sqlite.Tx, l *leaving) error {
		return l.find(tx, "SELECT seq, 1, bytes FROM turns WHERE "+chosenDead, listOf(numbers))
	})
}

// Oldest returns the arrival of the oldest waiting entry, or zero.
func (s *Ledger) Oldest() (time.Time, error) {
	var at int64
	err := s.db.QueryRow(context.Background(), "SELECT coalesce((SELECT at FROM turns WHERE "+queued+" AND state <> 'dead' ORDER BY seq LIMIT 1), 0)", nil, &at)
	if err != nil || at == 0 {
		return time.Time{}, err
	}
	return time.UnixMilli(at), nil
}

// Prune deletes the rows of settled turns older than SeenFor, and those before the newest
// most rows. It also deletes generations and sessions older than SeenFor.
//
// It goes by the order of arrival, because an index by time would cost a write for every
// turn. A row therefore outlives its time if an earlier row was settled later.
func (s *Ledger) Prune(now time.Time, most int) error {
	const settled = "DELETE FROM turns WHERE state NOT IN ('pending', 'sent', 'dead') AND seq "
	return s.write("prune the ledger", func(tx *sqlite.Tx) error {
		err := run(tx, settled+"< coalesce((SELECT seq FROM turns WHERE at >= ? ORDER BY seq LIMIT 1), 1 << 62)", now.Add(-SeenFor).UnixMilli())
		if err == nil {
			err = run(tx, settled+"<= (SELECT max(seq) FROM turns) - ?", most)
		}
		if err == nil {
			err = s.countKept(tx)
		}
		if err == nil {
			err = run(tx, "DELETE FROM floors WHERE at < ?", now.Add(-SeenFor).UnixMilli())
		}
		if err == nil {
			err = run(tx, "DELETE FROM sessions WHERE at < ?", now.Add(-SeenFor).Unix())
		}
		return err
	})
}

// Spare is the divisor of the reserve that a cut frees in addition: one in Spare. Without
// it every turn added to a full ledger would need a cut.
const Spare = 1000
