package capture

import (
	"context"
	"errors"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
)

// retryEvery is the delay between attempts to write to a failing disk.
const retryEvery = time.Second

// Add stores a turn for those of its groups that lack it. The turn is on disk when Add
// returns. Add never waits for a remote memory.
//
// While the disk fails, a bounded number of turns waits in RAM.
func (p *Pipeline) Add(ctx context.Context, t ledger.Turn) error {
	turns := p.withOwners(t)
	fresh := p.prepare(turns)
	err := p.writeWaiting()
	if err == nil {
		_, err = p.write(ctx, fresh)
	}
	err = p.orJournal(err, fresh)
	if sqlite.IsFault(err) && p.waiting.hold(fresh, err, p.Fault(), p.log) {
		err = nil
	}
	p.recent.settle(turns, err)
	return err
}

// AddAll is Add for many turns, in order and with a single fsync. The caller waits for the
// result, so no turn waits in RAM: AddAll fails if the disk does. It returns the number of
// turns that were new to a group; an exported turn counts once per side.
func (p *Pipeline) AddAll(ctx context.Context, turns []ledger.Turn) (kept int, err error) {
	if p.isClosed() {
		return 0, ErrStopped
	}
	fresh := p.prepare(turns)
	kept, err = p.write(ctx, fresh)
	p.recent.settle(fresh, err)
	return kept, err
}

// New returns the number of turns that AddAll would store.
func (p *Pipeline) New(ctx context.Context, turns []ledger.Turn) (int, error) {
	return p.Ledger.New(ctx, p.prepare(turns), time.Now())
}

// AddAsync is Add in the background for short notes. It does not block, and reports whether
// the notes fit within the bounds.
func (p *Pipeline) AddAsync(turns []ledger.Turn) bool {
	if p.isClosed() {
		return false
	}
	if !p.waiting.put(p.prepare(turns)) {
		p.log.Warn("notes dropped, too many turns are waiting")
		return false
	}
	return true
}

// Backfill records earlier turns of a conversation in the background, after all other
// waiting turns. It does not block. If recording a turn fails, the turn does not become
// Known, and the next request of the conversation offers it again.
func (p *Pipeline) Backfill(h History) {
	if p.isClosed() {
		return
	}
	for i := range h.Turns {
		p.recent.begin(h.Turns[i].ID)
	}
	if !p.waiting.putHistory(h) {
		p.recent.release(h.Turns)
		p.log.Warn("history dropped until its next request, too many turns are waiting")
	}
}

// CutOff records that the answer of a turn was interrupted, failed or withheld, or that the
// turn had no memory. Even after a restart, the turn is not recorded from a client's history
// or transcript. A repeated answer is recorded.
func (p *Pipeline) CutOff(ctx context.Context, t ledger.Turn) error {
	if p.isClosed() {
		return ErrStopped
	}
	t.User, t.Assistant = p.Redacted(t.User), p.Redacted(t.Assistant) // digests cover redacted texts
	return p.Ledger.CutOff(ctx, &t, time.Now())
}

// prepare returns the turns that a group may lack, cleaned for recording.
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

// write stores prepared turns and returns how many were new to a group.
func (p *Pipeline) write(ctx context.Context, turns []ledger.Turn) (kept int, err error) {
	if len(turns) == 0 {
		return 0, nil
	}
	all, err := p.store(ctx, turns)
	if err != nil {
		return 0, err
	}
	p.waiting.mended(p.log)
	for i := range turns {
		if p.OnKept != nil {
			p.OnKept(&turns[i], all[i].Groups)
		}
		if len(all[i].Groups) > 0 {
			kept += max(1, len(turns[i].Restored))
		}
	}
	return kept, nil
}

// writeWaiting writes the waiting turns and notes, to preserve the order of arrival. It
// fails if the disk does, or after Shutdown.
func (p *Pipeline) writeWaiting() error {
	if p.isClosed() {
		return ErrStopped
	}
	return p.flush()
}

// flush is writeWaiting that also works during Shutdown.
func (p *Pipeline) flush() error {
	if len(p.waiting.first()) == 0 && !p.journal.waits() {
		return nil
	}
	if p.journal != nil {
		if fault := p.Fault(); fault != nil { // known: a try would only read the journal
			return fault
		}
	}
	p.waiting.writing.Lock()
	defer p.waiting.writing.Unlock()
	if err := p.flushJournal(); err != nil {
		return err
	}
	for {
		turns := p.waiting.first()
		if len(turns) == 0 {
			return nil
		}
		_, err := p.write(context.Background(), turns)
		if sqlite.IsFault(err) {
			p.waiting.failed(err, p.Fault(), p.log)
			return err
		}
		if err != nil {
			p.log.Error("store waiting turns failed, turns lost", "error", err, "turns", len(turns))
		}
		p.recent.settle(turns, err)
		p.waiting.done(turns, err)
		p.waiting.mended(p.log)
	}
}

// flushJournal writes the turns of the journal. The ledger ignores one that it has, because an
// outage can hide the success of a write.
func (p *Pipeline) flushJournal() error {
	for p.journal.waits() {
		turns, last, err := p.journal.first()
		if err == nil {
			err = p.writeEach(turns)
		}
		if err == nil {
			err = p.journal.done(last)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// writeEach writes turns together, or else each alone: one that the ledger refuses must not hold
// up the others. It fails if the ledger's database does.
func (p *Pipeline) writeEach(turns []ledger.Turn) error {
	_, err := p.write(context.Background(), turns)
	if err == nil || sqlite.IsFault(err) {
		return err
	}
	for i := range turns {
		if _, err = p.write(context.Background(), turns[i:i+1]); sqlite.IsFault(err) {
			return err
		}
		if err != nil {
			p.log.Error("store waiting turns failed, turns lost", "error", err, "turns", 1)
		}
	}
	return nil
}

// recordWaiting is the loop that writes the waiting turns: first turns and notes, once the
// disk accepts them, then a history, and so on. It ends when Shutdown has closed and no histories are left.
func (p *Pipeline) recordWaiting() {
	var retry <-chan time.Time // nil without a failure
	for open := true; open; {
		select {
		case <-p.stopped.Done():
			open = false
		case <-retry:
			retry = nil
		case <-p.waiting.wake:
		}
		for more := true; more; more = p.recordHistory() {
			if retry == nil && p.flush() != nil {
				retry = time.After(retryEvery)
			}
		}
	}
}

// recordHistory records the next history, and reports whether there was one. If it cannot be
// recorded, the next request of its conversation offers it again.
func (p *Pipeline) recordHistory() bool {
	h, ok := p.waiting.history()
	if !ok {
		return false
	}
	defer p.waiting.historyDone()
	err := contained(func() error {
		if h.Wanted == nil {
			return p.addUnknown(p.base, h.Turns)
		}
		stored, err := p.Whole(p.base, h.Turns)
		if err != nil { // a failed read does not mean that the write fails
			stored = make([]bool, len(h.Turns))
		}
		turns, err := h.Wanted(p.base, h.Turns, stored)
		if err != nil {
			return err
		}
		return p.addUnknown(p.base, turns)
	})
	if err == nil {
		return true
	}
	if !errors.Is(err, context.Canceled) { // else the process stops
		p.log.Warn("store history failed, retrying with its next request", "error", err)
	}
	p.recent.release(h.Turns)
	return true
}

// addUnknown adds the turns of a history. Clients send the whole history each time, so most
// turns are recorded already. It skips those first, because redaction is the most expensive
// step.
func (p *Pipeline) addUnknown(ctx context.Context, turns []ledger.Turn) error {
	if len(turns) == 0 {
		return nil
	}
	whole, err := p.Whole(ctx, turns)
	list := make([]ledger.Turn, 0, len(turns))
	for i := range turns {
		if err != nil || !whole[i] { // a failed read does not mean that the write fails
			list = append(list, turns[i])
		}
	}
	fresh := p.prepare(list)
	_, err = p.write(ctx, fresh)
	if err = p.orJournal(err, fresh); err == nil {
		p.recent.settle(list, nil)
	}
	return err
}

// orJournal writes prepared turns to the journal if a database elsewhere failed with err.
func (p *Pipeline) orJournal(err error, turns []ledger.Turn) error {
	if p.journal == nil || !sqlite.IsFault(err) {
		return err
	}
	defer p.waiting.signal()
	return p.journal.put(turns)
}
