package capture

import (
	"context"
	"errors"

	"golang.org/x/sync/semaphore"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
)

const (
	// backfillBytes and maxHistories bound the histories that wait to be
	// recorded: after a restart all conversations come back with theirs at once.
	backfillBytes = 64 << 20
	maxHistories  = 1 << 13

	// batchTurns is from how many turns on no more are recorded in one write.
	batchTurns = 256

	// turnBytes is about what a turn takes beside what was said in it.
	turnBytes = 512
)

// History holds earlier turns of a conversation, read from one of its requests.
type History struct {
	Turns []ledger.Turn

	// Wanted says which of them are to be kept, for which it may wait. nil: all
	// of them.
	Wanted func(ctx context.Context, turns []ledger.Turn) ([]ledger.Turn, error)
}

// histories holds backfills that wait to be recorded: a request never waits for
// the disk.
type histories struct {
	waiting chan History
	room    *semaphore.Weighted // in bytes: what waits, and what is being recorded
}

func newHistories() histories {
	return histories{make(chan History, maxHistories), semaphore.NewWeighted(backfillBytes)}
}

// room is what a history takes. One that is too large alone waits alone.
func (h *History) room() int64 { return int64(min(turnsSize(h.Turns), backfillBytes)) }

// put takes a history, unless too much waits.
func (w histories) put(h History) bool {
	room := h.room()
	if !w.room.TryAcquire(room) {
		return false
	}
	select {
	case w.waiting <- h:
		return true
	default:
		w.room.Release(room)
		return false
	}
}

// more returns what waits behind a history, as far as it goes into one write.
func (w histories) more(first History) []History {
	list, n := []History{first}, len(first.Turns)
	for n < batchTurns {
		select {
		case h := <-w.waiting:
			list, n = append(list, h), n+len(h.Turns)
		default:
			return list
		}
	}
	return list
}

// Backfill records turns from before their conversation was first seen, some
// time later and in one write. It never waits. What cannot be recorded is not
// Known, so that the next request of the conversation offers it again.
func (p *Pipeline) Backfill(h History) {
	if p.isClosed() {
		return
	}
	for i := range h.Turns {
		p.recent.begin(h.Turns[i].ID)
	}
	if p.histories.put(h) {
		return
	}
	p.release(h.Turns)
	p.leftOut.Add(int64(len(h.Turns)))
	p.opts().Log.Warn("earlier turns of a conversation are left out, because too many wait; they are tried again with its next request")
}

// release lets later requests offer these turns again.
func (p *Pipeline) release(turns []ledger.Turn) {
	for i := range turns {
		p.recent.release(turns[i].ID)
	}
}

// recordHistories is the loop that records the histories that wait. It ends when
// Shutdown closes stop and none waits.
func (p *Pipeline) recordHistories() {
	for {
		select {
		case h := <-p.histories.waiting:
			p.recordAll(p.histories.more(h))
			continue
		case <-p.stop:
		}
		select {
		case h := <-p.histories.waiting:
			p.recordAll(p.histories.more(h))
		default:
			return
		}
	}
}

// recordAll records histories in one write.
func (p *Pipeline) recordAll(list []History) {
	defer func() {
		for _, h := range list {
			p.histories.room.Release(h.room())
		}
	}()
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
}

// giveBack takes back that turns of histories were taken, which cannot be
// recorded.
func (p *Pipeline) giveBack(err error, turns []ledger.Turn) {
	if !errors.Is(err, context.Canceled) { // else we stop
		p.opts().Log.Warn("turns of a history cannot be kept for now", "error", err)
	}
	p.release(turns)
}

// addUnknown is AddAll for a history. Clients send all of it each time, so most
// turns are known. Those are left out first, because the search for credentials
// takes longer than anything else.
func (p *Pipeline) addUnknown(ctx context.Context, turns []ledger.Turn) error {
	whole, err := p.record.Whole(ctx, turns)
	list := make([]ledger.Turn, 0, len(turns))
	for i := range turns {
		if err != nil || !whole[i] { // what cannot be read may be written elsewhere
			list = append(list, turns[i])
		}
	}
	_, err = p.keepAll(ctx, p.prepare(list))
	return err
}
