package capture

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
)

// upkeepEvery is the interval of the upkeep.
const upkeepEvery = time.Minute

// runUpkeep prunes the ledger and measures the memory each minute until Shutdown.
func (p *Pipeline) runUpkeep() {
	p.measure(time.Now())
	tick := time.NewTicker(upkeepEvery)
	defer tick.Stop()
	for {
		select {
		case <-p.stopped.Done():
			return
		case now := <-tick.C:
			p.prune(now)
			p.expire(now)
			p.measure(now)
		}
	}
}

func (p *Pipeline) prune(now time.Time) {
	if err := cmp.Or(p.readPromoted(), p.Prune(now, ledger.SeenMax)); err != nil {
		p.log.Warn("prune ledger failed", "error", err)
	}
}

// expireEvery is the interval of the deletion of old messages.
const expireEvery = time.Hour

func (p *Pipeline) expire(now time.Time) {
	retain := p.opts().Retain
	if retain.Off() || now.Sub(p.expired) < expireEvery {
		return
	}
	ctx := context.Background()
	gone, err := p.Expire(ctx, &retain, now, false)
	var left []ledger.Expired
	if err == nil && len(gone) > 0 { // verify the deletion
		left, err = p.Expire(ctx, &retain, now, true)
	}
	left = slices.DeleteFunc(left, func(e ledger.Expired) bool { return e.Held })
	if err != nil || len(left) > 0 {
		p.log.Warn("delete old messages failed, retrying", "error", err, "groups_left", len(left))
	} else {
		p.expired = now
	}
	messages, facts, work := 0, 0, 0
	for _, e := range gone {
		messages, facts, work = messages+e.Messages, facts+e.Facts, work+e.Work
	}
	if len(gone) > 0 {
		p.log.Info("old messages deleted", "messages", messages, "facts", facts, "groups", len(gone), "work", work)
	}
}

// Expired counts the messages and facts that a retention would delete now, and those on hold.
func (p *Pipeline) Expired(ctx context.Context, r *ledger.Retention) ([]ledger.Expired, error) {
	return p.Expire(ctx, r, time.Now(), true)
}

// Retention returns the current retention.
func (p *Pipeline) Retention() ledger.Retention { return p.opts().Retain }
