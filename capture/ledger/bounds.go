package ledger

import (
	"context"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
)

// DropChunk is how many entries are dropped in one transaction.
const DropChunk = 1000

// Dropped is what was removed from the spool.
type Dropped struct{ Pending, Dead Size }

// All are what waited and what was dead.
func (d Dropped) All() Size { return d.Pending.Plus(d.Dead) }

// The dead and the others have an index each for their order: neither
// statement looks at more than it may remove.
const (
	cutDead    = "DELETE FROM spool WHERE seq IN (" + firstOf + "WHERE dead = 1" + upTo + ")" + whatGoes
	cutWaiting = "DELETE FROM spool WHERE seq IN (" + firstOf + "WHERE dead = 0" + upTo + ")" + whatGoes

	firstOf = `SELECT seq FROM (SELECT seq, row_number() OVER (ORDER BY seq) AS nth, sum(bytes) OVER (ORDER BY seq) - bytes AS before
		FROM (SELECT seq, bytes FROM spool `
	upTo = ` ORDER BY seq LIMIT ?3)) WHERE nth <= ?1 OR before < ?2`

	whatGoes = " RETURNING dead, bytes, turn, grp, open, said"
)

// remember notes that a group has had a turn.
const remember = "INSERT INTO seen (turn, grp, at, open, said) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING"

// removal is what one write removes from the file. It is noted as had: what was
// Dropped does not come back with the history that a client sends.
type removal struct {
	Dropped
	had []heardOf
}

// heardOf is what is remembered of a turn.
type heardOf struct {
	turn, group, said string
	open              bool
}

func (r *removal) row(scan func(...any) error) error {
	var h heardOf
	err := r.Dropped.row(func(dest ...any) error { return scan(append(dest, &h.turn, &h.group, &h.open, &h.said)...) })
	r.had = append(r.had, h)
	return err
}

func (r *removal) note(tx *sqlite.Tx) error {
	at := time.Now().Unix()
	for _, h := range r.had {
		if _, err := tx.Exec(remember, h.turn, h.group, at, h.open, h.said); err != nil {
			return err
		}
	}
	return count(tx, "dropped", r.All().Turns)
}

// remove writes down what find removes.
func (s *Ledger) remove(find func(tx *sqlite.Tx, r *removal) error) (d Dropped, err error) {
	err = s.write("drop from spool", func(tx *sqlite.Tx) error {
		var r removal
		if err := find(tx, &r); err != nil {
			return err
		}
		d = r.Dropped
		return r.note(tx)
	})
	return d, err
}

// Cut removes as many turns and bytes as are over the bounds: of the dead,
// while there are some, else of those that wait, the oldest first; dropChunk
// at most.
func (s *Ledger) Cut(over Size) (Dropped, error) {
	return s.remove(func(tx *sqlite.Tx, r *removal) error {
		for _, statement := range []string{cutDead, cutWaiting} {
			gone := r.All()
			left, room := over.Minus(gone), DropChunk-gone.Turns
			if left.Turns <= 0 && left.Bytes <= 0 || room <= 0 {
				break
			}
			if err := rowsIn(tx, statement, []any{left.Turns, left.Bytes, room}, r.row); err != nil {
				return err
			}
		}
		return nil
	})
}

// DropBefore removes the entries that came in before t, up to dropChunk of
// them. Entries come in by time, so that only the first need be looked at.
func (s *Ledger) DropBefore(t time.Time) (Dropped, error) {
	const old = "DELETE FROM spool WHERE seq IN (SELECT seq FROM (SELECT seq, born FROM spool ORDER BY seq LIMIT 1000) WHERE born < ?)" + whatGoes
	return s.remove(func(tx *sqlite.Tx, r *removal) error { return rowsIn(tx, old, []any{t.UnixMilli()}, r.row) })
}

// DropDead removes the dead of those numbers, or all when there are none.
func (s *Ledger) DropDead(numbers []int64) (Dropped, error) {
	return s.remove(func(tx *sqlite.Tx, r *removal) error {
		return forDead(tx, "DELETE FROM spool WHERE dead = 1 AND (?1 OR seq = ?2)"+whatGoes, numbers, r.row)
	})
}

// row adds a removed row.
func (d *Dropped) row(scan func(...any) error) error {
	var dead bool
	one := Size{Turns: 1}
	if err := scan(&dead, &one.Bytes); err != nil {
		return err
	}
	if dead {
		d.Dead = d.Dead.Plus(one)
	} else {
		d.Pending = d.Pending.Plus(one)
	}
	return nil
}

// Oldest is when the oldest waiting entry came in; zero when none waits.
func (s *Ledger) Oldest() (time.Time, error) {
	var born int64
	err := s.db.QueryRow(context.Background(), "SELECT coalesce((SELECT born FROM spool WHERE dead = 0 ORDER BY seq LIMIT 1), 0)", nil, &born)
	if err != nil || born == 0 {
		return time.Time{}, err
	}
	return time.UnixMilli(born), nil
}

// Prune forgets the delivered turns that need not be remembered any more,
// and what was forgotten so long ago that nobody brings it.
func (s *Ledger) Prune(now time.Time, most int) error {
	return s.write("forget delivered turns", func(tx *sqlite.Tx) error {
		_, err := tx.Exec(`DELETE FROM seen WHERE at < ?1 OR at <= (SELECT at FROM seen ORDER BY at DESC LIMIT 1 OFFSET ?2)`,
			now.Add(-SeenFor).Unix(), most)
		if err == nil {
			_, err = tx.Exec("DELETE FROM forgot WHERE at < ?", now.Add(-SeenFor).UnixMicro())
		}
		if err == nil {
			_, err = tx.Exec("DELETE FROM talks WHERE at < ?", now.Add(-SeenFor).Unix())
		}
		return err
	})
}

// Spare is the part of the bounds, one in so many, that is free after a cut: so
// not every turn that comes into a full spool needs one.
const Spare = 1000
