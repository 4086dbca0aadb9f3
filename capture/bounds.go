package capture

import (
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
)

// over is how much has to go of what is held; nothing while it is within the
// bounds.
func (o *Options) over(held ledger.Sizes) ledger.Size {
	n := held.Pending.Plus(held.Dead).Minus(ledger.Size{Turns: o.MaxTurns, Bytes: o.MaxBytes})
	if n.Turns <= 0 && n.Bytes <= 0 {
		return ledger.Size{}
	}
	return n.Plus(ledger.Size{Turns: o.MaxTurns / ledger.Spare, Bytes: o.MaxBytes / ledger.Spare})
}

// makeRoom drops what is over the bounds: dead turns, then the oldest.
func (p *Pipeline) makeRoom() {
	p.cutting.Lock()
	defer p.cutting.Unlock()
	p.mu.Lock()
	over := p.opts().over(p.held)
	p.mu.Unlock()
	for over.Turns > 0 || over.Bytes > 0 {
		gone, err := p.spool.Cut(over)
		if err != nil {
			p.opts().Log.Warn("the spool is over its bounds and cannot be cut", "error", err)
			return
		}
		n := p.noteDropped(gone, "the spool is full; these were the oldest")
		p.evicted.Add(int64(n))
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
func (p *Pipeline) noteDropped(d ledger.Dropped, why string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := d.All().Turns
	p.held.Pending = p.held.Pending.Minus(d.Pending)
	p.held.Dead = p.held.Dead.Minus(d.Dead)
	p.totals.Dropped += n
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

// logDropsLocked logs dropped turns, each reason at most once in quiet.
func (p *Pipeline) logDropsLocked(quiet time.Duration) {
	now := time.Now()
	for why, d := range p.drops {
		if d.since > 0 && now.Sub(d.logged) >= quiet {
			p.opts().Log.Warn("turns are dropped from the queue", "why", why, "turns", d.since, "dropped_in_all", p.totals.Dropped)
			d.logged, d.since = now, 0
		}
	}
}

// upkeepEvery is how often old entries are looked for.
const upkeepEvery = time.Minute

// upkeep is the loop that removes what has waited too long. It ends when
// Shutdown closes stop.
func (p *Pipeline) upkeep() {
	tick := time.NewTicker(upkeepEvery)
	defer tick.Stop()
	for {
		select {
		case <-p.stop:
			return
		case now := <-tick.C:
			p.upkeepNow(now)
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
		gone, err := p.spool.DropBefore(now.Add(-p.opts().MaxAge))
		if err != nil {
			p.opts().Log.Warn("the spool cannot be cleaned", "error", err)
			return
		}
		n := p.noteDropped(gone, "they waited longer than ingest.max_age")
		p.evicted.Add(int64(n))
		if n < ledger.DropChunk {
			break
		}
	}
	if err := p.spool.Prune(now, ledger.SeenMax); err != nil {
		p.opts().Log.Warn("the spool cannot be cleaned", "error", err)
	}
}
