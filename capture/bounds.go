package capture

import (
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
)

// over is how much has to go of what is held; nothing while it is within the
// bounds.
func (o *Bounds) over(held ledger.Sizes) ledger.Size {
	n := held.Pending.Plus(held.Dead).Minus(ledger.Size{Turns: o.MaxTurns, Bytes: o.MaxBytes})
	if n.Turns <= 0 && n.Bytes <= 0 {
		return ledger.Size{}
	}
	return n.Plus(ledger.Size{Turns: o.MaxTurns / ledger.Spare, Bytes: o.MaxBytes / ledger.Spare})
}

// makeRoom drops what is over the bounds: dead turns, then the oldest.
func (b *outbox) makeRoom() {
	b.cutting.Lock()
	defer b.cutting.Unlock()
	b.mu.Lock()
	over := b.opts().over(b.held)
	b.mu.Unlock()
	for over.Turns > 0 || over.Bytes > 0 {
		gone, err := b.spool.Cut(over)
		if err != nil {
			b.log.Warn("the spool is over its bounds and cannot be cut", "error", err)
			return
		}
		n := b.noteDropped(gone, "the spool is full; these were the oldest")
		b.evicted.Add(int64(n))
		if n == 0 {
			return
		}
		over = over.Minus(gone.All())
	}
}

// drops are those for one reason.
type drops struct {
	logged time.Time
	since  int // which were not logged
}

// noteDropped takes dropped turns off the counts, and logs them, for each
// reason once a minute.
func (b *outbox) noteDropped(d ledger.Dropped, why string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := d.All().Turns
	b.held.Pending = b.held.Pending.Minus(d.Pending)
	b.held.Dead = b.held.Dead.Minus(d.Dead)
	b.totals.Dropped += n
	b.countDropsLocked(n, why)
	b.logDropsLocked(time.Minute)
	return n
}

func (b *outbox) countDropsLocked(n int, why string) {
	if b.drops == nil {
		b.drops = make(map[string]*drops)
	}
	if b.drops[why] == nil {
		b.drops[why] = &drops{}
	}
	b.drops[why].since += n
}

// logDropsLocked logs dropped turns, each reason at most once in quiet.
func (b *outbox) logDropsLocked(quiet time.Duration) {
	now := time.Now()
	for why, d := range b.drops {
		if d.since > 0 && now.Sub(d.logged) >= quiet {
			b.log.Warn("turns are dropped from the queue", "why", why, "turns", d.since, "dropped_in_all", b.totals.Dropped)
			d.logged, d.since = now, 0
		}
	}
}

// upkeepEvery is how often old entries are looked for.
const upkeepEvery = time.Minute

// everyMinute calls f each minute, until stop is closed.
func everyMinute(stop <-chan struct{}, f func(now time.Time)) {
	tick := time.NewTicker(upkeepEvery)
	defer tick.Stop()
	for {
		select {
		case <-stop:
			return
		case now := <-tick.C:
			f(now)
		}
	}
}

// upkeepNow removes what has waited too long, and what need not be remembered
// any more.
func (b *outbox) upkeepNow(now time.Time) {
	b.mu.Lock()
	b.logDropsLocked(time.Minute)
	leads := b.leadsLocked()
	b.mu.Unlock()
	if !leads {
		return
	}
	for {
		gone, err := b.spool.DropBefore(now.Add(-b.opts().MaxAge))
		if err != nil {
			b.log.Warn("the spool cannot be cleaned", "error", err)
			return
		}
		n := b.noteDropped(gone, "they waited longer than ingest.max_age")
		b.evicted.Add(int64(n))
		if n < ledger.DropChunk {
			break
		}
	}
	if err := b.spool.Prune(now, ledger.SeenMax); err != nil {
		b.log.Warn("the spool cannot be cleaned", "error", err)
	}
}
