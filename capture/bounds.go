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

// all are what waited and what was dead.
func (d dropped) all() size { return d.pending.plus(d.dead) }

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
// dropped does not come back with the history that a client sends.
type removal struct {
	dropped
	had []heardOf
}

// heardOf is what is remembered of a turn.
type heardOf struct {
	turn, group, said string
	open              bool
}

func (r *removal) row(scan func(...any) error) error {
	var h heardOf
	err := r.dropped.row(func(dest ...any) error { return scan(append(dest, &h.turn, &h.group, &h.open, &h.said)...) })
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
	return count(tx, "dropped", r.all().turns)
}

// remove writes down what find removes.
func (s *spool) remove(find func(tx *sqlite.Tx, r *removal) error) (d dropped, err error) {
	err = s.write("drop from spool", func(tx *sqlite.Tx) error {
		var r removal
		if err := find(tx, &r); err != nil {
			return err
		}
		d = r.dropped
		return r.note(tx)
	})
	return d, err
}

// cut removes as many turns and bytes as are over the bounds: of the dead,
// while there are some, else of those that wait, the oldest first; dropChunk
// at most.
func (s *spool) cut(over size) (dropped, error) {
	return s.remove(func(tx *sqlite.Tx, r *removal) error {
		for _, statement := range []string{cutDead, cutWaiting} {
			gone := r.all()
			left, room := over.minus(gone), dropChunk-gone.turns
			if left.turns <= 0 && left.bytes <= 0 || room <= 0 {
				break
			}
			if err := rowsIn(tx, statement, []any{left.turns, left.bytes, room}, r.row); err != nil {
				return err
			}
		}
		return nil
	})
}

// dropBefore removes the entries that came in before t, up to dropChunk of
// them. Entries come in by time, so that only the first need be looked at.
func (s *spool) dropBefore(t time.Time) (dropped, error) {
	const old = "DELETE FROM spool WHERE seq IN (SELECT seq FROM (SELECT seq, born FROM spool ORDER BY seq LIMIT 1000) WHERE born < ?)" + whatGoes
	return s.remove(func(tx *sqlite.Tx, r *removal) error { return rowsIn(tx, old, []any{t.UnixMilli()}, r.row) })
}

// dropDead removes the dead of those numbers, or all when there are none.
func (s *spool) dropDead(numbers []int64) (dropped, error) {
	return s.remove(func(tx *sqlite.Tx, r *removal) error {
		return forDead(tx, "DELETE FROM spool WHERE dead = 1 AND (?1 OR seq = ?2)"+whatGoes, numbers, r.row)
	})
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

// forgetSeen forgets the delivered turns that need not be remembered any more,
// and what was forgotten so long ago that nobody brings it.
func (s *spool) forgetSeen(now time.Time, most int) error {
	return s.write("forget delivered turns", func(tx *sqlite.Tx) error {
		_, err := tx.Exec(`DELETE FROM seen WHERE at < ?1 OR at <= (SELECT at FROM seen ORDER BY at DESC LIMIT 1 OFFSET ?2)`,
			now.Add(-seenFor).Unix(), most)
		if err == nil {
			_, err = tx.Exec("DELETE FROM forgot WHERE at < ?", now.Add(-seenFor).UnixMicro())
		}
		if err == nil {
			_, err = tx.Exec("DELETE FROM talks WHERE at < ?", now.Add(-seenFor).Unix())
		}
		return err
	})
}

// spare is the part of the bounds, one in so many, that is free after a cut: so
// not every turn that comes into a full spool needs one.
const spare = 1000

// over is how much has to go of what is held; nothing while it is within the
// bounds.
func (o *Options) over(held sizes) size {
	n := held.pending.plus(held.dead).minus(size{o.MaxTurns, o.MaxBytes})
	if n.turns <= 0 && n.bytes <= 0 {
		return size{}
	}
	return n.plus(size{o.MaxTurns / spare, o.MaxBytes / spare})
}

// makeRoom drops what is over the bounds: dead turns, then the oldest.
func (p *Pipeline) makeRoom() {
	p.cutting.Lock()
	defer p.cutting.Unlock()
	p.mu.Lock()
	over := p.opts().over(p.held)
	p.mu.Unlock()
	for over.turns > 0 || over.bytes > 0 {
		gone, err := p.spool.cut(over)
		if err != nil {
			p.opts().Log.Warn("the spool is over its bounds and cannot be cut", "error", err)
			return
		}
		n := p.noteDropped(gone, "the spool is full; these were the oldest")
		p.evicted.Add(int64(n))
		if n == 0 {
			return
		}
		over = over.minus(gone.all())
	}
}

// drops are those for one reason.
type drops struct {
	logged time.Time
	since  int // which were not logged
}

// noteDropped takes dropped turns off the counts, and logs them, for each
// reason once a minute.
func (p *Pipeline) noteDropped(d dropped, why string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := d.all().turns
	p.held.pending = p.held.pending.minus(d.pending)
	p.held.dead = p.held.dead.minus(d.dead)
	p.totals.dropped += n
	p.countDropsLocked(n, why)
	p.logDropsLocked(time.Minute)
	return n
}

func (p *Pipeline) countDropsLocked(n int, why string) {
	if p.drops == nil {
		p.drops = make(map[string]*drops)
	}
	if p.drops[why] == nil {
		p.drops[why] = &drops{}
	}
	p.drops[why].since += n
}

// logDropsLocked logs the drops of which none was logged for so long.
func (p *Pipeline) logDropsLocked(quiet time.Duration) {
	now := time.Now()
	for why, d := range p.drops {
		if d.since > 0 && now.Sub(d.logged) >= quiet {
			p.opts().Log.Warn("turns are dropped from the queue", "why", why, "turns", d.since, "dropped_in_all", p.totals.dropped)
			d.logged, d.since = now, 0
		}
	}
}

// upkeepNow removes what has waited too long, and what need not be remembered
// any more.
func (p *Pipeline) upkeepNow(now time.Time) {
	p.mu.Lock()
	p.logDropsLocked(time.Minute)
	leads := p.leadsLocked()
	p.mu.Unlock()
	if !leads {
		return
	}
	for {
		gone, err := p.spool.dropBefore(now.Add(-p.opts().MaxAge))
		if err != nil {
			p.opts().Log.Warn("the spool cannot be cleaned", "error", err)
			return
		}
		n := p.noteDropped(gone, "they waited longer than ingest.max_age")
		p.evicted.Add(int64(n))
		if n < dropChunk {
			break
		}
	}
	if err := p.spool.forgetSeen(now, seenMax); err != nil {
		p.opts().Log.Warn("the spool cannot be cleaned", "error", err)
	}
}
