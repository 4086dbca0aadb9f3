package capture

import (
	"context"
	"errors"
	"sync"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
)

const (
	// backfillBytes bounds what is said in the histories that wait to be
	// recorded: after a restart all conversations come back with theirs at once.
	backfillBytes = 64 << 20

	// noteBytes bounds what is said in the notes that wait. They have room of
	// their own beside the histories.
	noteBytes = 4 << 20

	// batchTurns is from how many turns on no more are recorded in one write.
	batchTurns = 256

	// turnBytes is about what a turn takes beside what was said in it.
	turnBytes = 512
)

// asyncWriter holds turns that are recorded some time after they were handed
// over: the one who hands them over must not wait for a disk. It is safe for
// concurrent use.
type asyncWriter struct {
	wake chan struct{} // something waits; more than one says nothing new

	mu        sync.Mutex // guards what follows
	notes     []batch
	histories []batch
	bytes     map[bool]int // of notes, and of what is no note: what waits, and what is being recorded
	closed    bool
}

func newAsyncWriter() *asyncWriter {
	return &asyncWriter{wake: make(chan struct{}, 1), bytes: make(map[bool]int)}
}

// batch is what was handed over at once.
type batch struct {
	History
	note  bool
	bytes int
}

// History is what a conversation brings along of what was said before.
type History struct {
	Turns []ledger.Turn

	// Wanted says which of them are to be kept, for which it may wait. nil: all
	// of them.
	Wanted func(ctx context.Context, turns []ledger.Turn) ([]ledger.Turn, error)
}

// put takes a batch, unless too much waits. One that is too large alone waits
// alone.
func (w *asyncWriter) put(b batch) bool {
	b.bytes = turnsSize(b.Turns)
	most := backfillBytes
	if b.note {
		most = noteBytes
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if had := w.bytes[b.note]; w.closed || had > 0 && had+b.bytes > most {
		return false
	}
	if b.note {
		w.notes = append(w.notes, b)
	} else {
		w.histories = append(w.histories, b)
	}
	w.bytes[b.note] += b.bytes
	select {
	case w.wake <- struct{}{}:
	default:
	}
	return true
}

// take hands out as many batches as go into one write: the notes, which were
// said a moment ago, or the histories that came first.
func (w *asyncWriter) take() (list []batch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	queue := &w.notes
	if len(w.notes) == 0 {
		queue = &w.histories
	}
	for n := 0; len(*queue) > 0 && n < batchTurns; *queue = (*queue)[1:] {
		list = append(list, (*queue)[0])
		n += len((*queue)[0].Turns)
		(*queue)[0] = batch{}
	}
	return list
}

// over says that batches need no room any more.
func (w *asyncWriter) over(list []batch) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, b := range list {
		w.bytes[b.note] -= b.bytes
	}
}

// close takes nothing more, if nothing waits, and reports whether that is so.
func (w *asyncWriter) close() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = len(w.notes)+len(w.histories) == 0
	return w.closed
}

// Backfill records turns from before their conversation was first seen, some
// time later and in one write. It never waits. What cannot be recorded is not
// Known, so that the next request of the conversation brings it again.
func (p *Pipeline) Backfill(h History) {
	if p.isClosed() {
		return
	}
	for i := range h.Turns {
		p.recent.begin(h.Turns[i].ID)
	}
	if p.async.put(batch{History: h}) {
		return
	}
	p.release(h.Turns)
	p.leftOut.Add(int64(len(h.Turns)))
	p.opts().Log.Warn("earlier turns of a conversation are left out, because too many wait; they are tried again with its next request")
}

// AddAsync is Add some time later: for what is short, and was said a moment ago.
// It never waits, and reports whether there was room.
func (p *Pipeline) AddAsync(turns []ledger.Turn) bool {
	switch {
	case p.isClosed():
		return false
	case len(p.wanted(turns)) == 0:
		return true
	case p.async.put(batch{History: History{Turns: turns}, note: true}):
		return true
	}
	p.opts().Log.Warn("notes to be kept are left out, because too many wait")
	return false
}

func (p *Pipeline) isClosed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.closed
}

// release has histories bring turns again.
func (p *Pipeline) release(turns []ledger.Turn) {
	for i := range turns {
		p.recent.release(turns[i].ID)
	}
}

// recordAsync is the loop that records what was handed over. It ends when
// Shutdown closes stop and nothing waits.
func (p *Pipeline) recordAsync() {
	stop := p.stop
	for {
		switch {
		case p.recordBatches():
			continue
		case stop == nil && p.async.close():
			return
		case stop == nil:
			continue
		}
		select {
		case <-p.async.wake:
		case <-stop:
			stop = nil
		}
	}
}

// recordBatches records some of what waits, and reports whether there was
// something.
func (p *Pipeline) recordBatches() bool {
	list := p.async.take()
	if len(list) == 0 {
		return false
	}
	defer p.async.over(list)
	var turns []ledger.Turn
	var batches []batch
	for _, b := range list {
		all := b.Turns
		err := contained(func() (err error) {
			if b.Wanted != nil {
				b.Turns, err = b.Wanted(p.base, all)
			}
			return err
		})
		if err != nil {
			b.Turns = all
			p.giveBack(err, b)
			continue
		}
		turns, batches = append(turns, b.Turns...), append(batches, b)
	}
	if err := contained(func() error { return p.addUnknown(p.base, turns) }); err != nil {
		p.giveBack(err, batches...)
	}
	return true
}

// giveBack takes back that batches were taken, which cannot be recorded. Nobody
// brings a note again: it is held until the disk can be written.
func (p *Pipeline) giveBack(err error, list ...batch) {
	if !errors.Is(err, context.Canceled) { // else we stop
		p.opts().Log.Warn("turns of a history, or notes, cannot be kept for now", "error", err)
	}
	for _, b := range list {
		if b.note {
			_ = p.holdUnkept(b.Turns, err) // which logs it
		} else {
			p.release(b.Turns)
		}
	}
}

// addUnknown is addAll for turns most of which may be known: clients send their
// whole history again. What all groups have is left out before it is read for
// credentials, which takes longer than anything else.
func (p *Pipeline) addUnknown(ctx context.Context, turns []ledger.Turn) error {
	whole, err := p.spool.Whole(ctx, turns)
	list := make([]ledger.Turn, 0, len(turns))
	for i := range turns {
		if err != nil || !whole[i] || turns[i].Again { // what cannot be read may be written elsewhere
			list = append(list, turns[i])
		}
	}
	_, err = p.addAll(ctx, list)
	return err
}
