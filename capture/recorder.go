package capture

import (
	"context"
	"errors"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
)

// retryEvery is how often a disk that fails is tried again.
const retryEvery = time.Second

// Add stores a turn for its groups, less those that have it already. It is on
// disk when Add returns, and never waits for a memory that is elsewhere.
//
// While the disk takes nothing, a bounded number of turns waits in RAM.
func (p *Pipeline) Add(ctx context.Context, t ledger.Turn) error {
	return p.AddTurns(ctx, []ledger.Turn{t})
}

// AddTurns is Add for turns that belong together.
func (p *Pipeline) AddTurns(ctx context.Context, turns []ledger.Turn) error {
	fresh := p.prepare(turns)
	err := p.writeWaiting()
	if err == nil {
		_, err = p.write(ctx, fresh)
	}
	if sqlite.IsFault(err) && p.waiting.hold(fresh, err, p.Fault(), p.log) {
		err = nil
	}
	p.recent.settle(turns, err)
	return err
}

// AddAll is Add for many turns, in order and with one wait for the disk. Its caller
// waits for the result, so none of them waits in RAM: if the disk takes nothing, it
// fails. It returns how many turns were new to a group; of turns that come from an
// export, how many of their sides.
func (p *Pipeline) AddAll(ctx context.Context, turns []ledger.Turn) (kept int, err error) {
	if p.isClosed() {
		return 0, ErrStopped
	}
	fresh := p.prepare(turns)
	kept, err = p.write(ctx, fresh)
	p.recent.settle(fresh, err)
	return kept, err
}

// AddAsync is Add in the background, for short notes from a moment ago. It does not
// wait, and reports whether there was room.
func (p *Pipeline) AddAsync(turns []ledger.Turn) bool {
	if p.isClosed() {
		return false
	}
	if !p.waiting.put(p.prepare(turns)) {
		p.log.Warn("notes to be kept are left out, because too many turns wait")
		return false
	}
	return true
}

// Backfill records earlier turns of a conversation in the background, after everything
// else that waits. It does not wait. A turn that cannot be recorded is not Known, so
// that the next request of the conversation offers it again.
func (p *Pipeline) Backfill(h History) {
	if p.isClosed() {
		return
	}
	for i := range h.Turns {
		p.recent.begin(h.Turns[i].ID)
	}
	if !p.waiting.putHistory(h) {
		p.recent.release(h.Turns)
		p.log.Warn("earlier turns of a conversation are left out, because too many wait; they are tried again with its next request")
	}
}

// CutOff notes that the answer of a turn was cut off, failed, or was withheld. What a
// client's history shows of that answer is not kept, even after a restart. If the turn
// is answered again, it is kept.
func (p *Pipeline) CutOff(ctx context.Context, t ledger.Turn) error {
	if p.isClosed() {
		return ErrStopped
	}
	t.User, t.Assistant = p.Redacted(t.User), p.Redacted(t.Assistant) // as what is kept is compared
	return p.record.CutOff(ctx, &t)
}

// prepare returns the turns that a group may not have, as they are recorded.
func (p *Pipeline) prepare(turns []ledger.Turn) []ledger.Turn {
	list := make([]ledger.Turn, 0, len(turns))
	for _, t := range turns {
		if len(t.Targets) > 0 && !p.recent.has(t.ID, t.Targets) {
			p.clean(&t)
			list = append(list, t)
		}
	}
	return list
}

// write stores turns as they are, and returns how many some group did not have.
func (p *Pipeline) write(ctx context.Context, turns []ledger.Turn) (kept int, err error) {
	if len(turns) == 0 {
		return 0, nil
	}
	all, err := p.record.Add(ctx, turns)
	if err != nil {
		return 0, err
	}
	p.waiting.mended(p.log)
	for i := range turns {
		p.onKept(&turns[i], all[i].Groups)
		if len(all[i].Groups) > 0 {
			kept += max(1, len(turns[i].Restored))
		}
	}
	return kept, nil
}

// writeWaiting writes the turns and notes that wait, so that what comes now stands
// behind them. It returns an error when the disk does not take them, or no turns are
// taken any more.
func (p *Pipeline) writeWaiting() error {
	if p.isClosed() {
		return ErrStopped
	}
	return p.flush()
}

// flush is writeWaiting also for what waits at the end.
func (p *Pipeline) flush() error {
	if len(p.waiting.first(&p.waiting.turns)) == 0 {
		return nil
	}
	p.waiting.writing.Lock()
	defer p.waiting.writing.Unlock()
	for {
		list := p.waiting.first(&p.waiting.turns)
		if len(list) == 0 {
			return nil
		}
		var turns []ledger.Turn
		for _, h := range list {
			turns = append(turns, h.Turns...)
		}
		_, err := p.write(context.Background(), turns)
		if sqlite.IsFault(err) {
			p.waiting.failed(err, p.Fault(), p.log)
			return err
		}
		if err != nil {
			p.log.Error("turns that waited in RAM cannot be kept", "error", err, "turns", len(turns))
		}
		p.recent.settle(turns, err)
		p.waiting.done(&p.waiting.turns, list, err)
		p.waiting.mended(p.log)
	}
}

// recordWaiting is the loop that writes what waits: turns and notes, when the disk
// takes them, then some histories, and so on. It ends when Shutdown closes stop and
// no history waits.
func (p *Pipeline) recordWaiting() {
	var retry <-chan time.Time // nil while nothing failed
	for open := true; open; {
		select {
		case <-p.stop:
			open = false
		case <-retry:
			retry = nil
		case <-p.waiting.wake:
		}
		for more := true; more; more = p.recordHistories() {
			if retry == nil && p.flush() != nil {
				retry = time.After(retryEvery)
			}
		}
	}
}

// recordHistories records in one write the histories that came first, and reports
// whether there were any.
func (p *Pipeline) recordHistories() bool {
	list := p.waiting.first(&p.waiting.histories)
	var turns []ledger.Turn
	for _, h := range list {
		wanted := h.Turns
		err := contained(func() (err error) {
			if h.Wanted != nil {
				wanted, err = h.Wanted(p.base, h.Turns)
			}
			return err
		})
		if err != nil {
			p.giveBack(err, h.Turns)
			continue
		}
		turns = append(turns, wanted...)
	}
	if err := contained(func() error { return p.addUnknown(p.base, turns) }); err != nil {
		p.giveBack(err, turns)
	}
	p.waiting.done(&p.waiting.histories, list, nil)
	return len(list) > 0
}

// giveBack has the next request bring turns of histories again that cannot be
// recorded.
func (p *Pipeline) giveBack(err error, turns []ledger.Turn) {
	if !errors.Is(err, context.Canceled) { // else we stop
		p.log.Warn("turns of a history cannot be kept for now", "error", err)
	}
	p.recent.release(turns)
}

// addUnknown adds the turns of a history. Clients send all of it each time, so most
// turns are known. Those are left out first, because the search for credentials
// takes longer than anything else.
func (p *Pipeline) addUnknown(ctx context.Context, turns []ledger.Turn) error {
	if len(turns) == 0 {
		return nil
	}
	whole, err := p.record.Whole(ctx, turns)
	list := make([]ledger.Turn, 0, len(turns))
	for i := range turns {
		if err != nil || !whole[i] { // what cannot be read may be written elsewhere
			list = append(list, turns[i])
		}
	}
	_, err = p.write(ctx, p.prepare(list))
	return err
}
