package capture

import (
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
)

// over returns the excess of held over the bounds plus a reserve, or zero.
func (o *Bounds) over(held ledger.Sizes) ledger.Size {
	n := held.Pending.Plus(held.Dead).Minus(ledger.Size{Turns: o.MaxTurns, Bytes: o.MaxBytes})
	if n.Turns <= 0 && n.Bytes <= 0 {
		return ledger.Size{}
	}
	return n.Plus(ledger.Size{Turns: o.MaxTurns / ledger.Spare, Bytes: o.MaxBytes / ledger.Spare})
}

// makeRoom drops the turns over the bounds: dead ones, then the oldest.
func (b *outbox) makeRoom() {
	b.cutting.Lock()
	defer b.cutting.Unlock()
	b.mu.Lock()
	over := b.opts().over(b.held)
	b.mu.Unlock()
	for over.Turns > 0 || over.Bytes > 0 {
		gone, err := b.spool.Cut(over)
		if err != nil {
			b.log.Warn("cut spool failed", "error", err)
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

// drops counts dropped turns of one reason.
type drops struct {
	logged time.Time
	since  int // not logged yet
}

// noteDropped subtracts dropped turns from the counts and logs them, each reason at most
// once a minute.
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

// logDropsLocked logs dropped turns, each reason at most once per quiet interval.
func (b *outbox) logDropsLocked(quiet time.Duration) {
	now := time.Now()
	for why, d := range b.drops {
		if d.since > 0 && now.Sub(d.logged) >= quiet {
			b.log.Warn("turns dropped from the queue", "why", why, "turns", d.since, "dropped_in_all", b.totals.Dropped)
			d.logged, d.since = now, 0
		}
	}
}

// upkeepEvery is the interval of everyMinute.
const upkeepEvery = time.Minute

// everyMinute calls f each minute until stop is closed.
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

// upkeepNow drops copies older than MaxAge.
func (b *outbox) upkeepNow(now time.Time) {
	b.mu.Lock()
	b.logDropsLocked(time.Minute)
	b.mu.Unlock()
	for {
		gone, err := b.spool.DropBefore(now.Add(-b.opts().MaxAge))
		if err != nil {
			b.log.Warn("prune spool failed", "error", err)
			return
		}
		n := b.noteDropped(gone, "they waited longer than ingest.max_age")
		b.evicted.Add(int64(n))
		if n < ledger.DropChunk {
			break
		}
	}
}
