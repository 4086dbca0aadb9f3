package capture

import (
	"context"
	"errors"
	"sync"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
)

const (
	// earlierBytes bounds what is said in the earlier turns that wait to be
	// stored: after a restart all conversations come back with theirs at once.
	earlierBytes = 64 << 20

	// noteBytes bounds what is said in the notes that wait.
	noteBytes = 4 << 20

	// laterTurns is from how many turns on no more are stored in one write.
	laterTurns = 256

	// turnBytes is about what a turn takes beside what was said in it.
	turnBytes = 512
)

// later holds turns that are stored some time after they were handed over: the
// one who hands them over must not wait for a disk. It is safe for concurrent
// use.
type later struct {
	most int // bytes

	mu     sync.Mutex // guards what follows
	list   []batch
	bytes  int // of what waits, and of what is being stored
	closed bool
}

// batch is what was handed over at once.
type batch struct {
	History
	bytes int
}

// History is what a conversation brings along of what was said before.
type History struct {
	Turns []ledger.Turn

	// Wanted says which of them are to be kept, for which it may wait. nil: all
	// of them.
	Wanted func(ctx context.Context, turns []ledger.Turn) ([]ledger.Turn, error)

	// Left is called, perhaps by another goroutine, when they are not stored:
	// too many wait, or something fails. May be nil.
	Left func()
}

func (h *History) left() {
	if h.Left != nil {
		h.Left()
	}
}

// put takes a batch, unless too much waits. One that is too large alone waits
// alone.
func (l *later) put(h History) bool {
	b := batch{History: h}
	for i := range h.Turns {
		b.bytes += turnBytes + len(h.Turns[i].User) + len(h.Turns[i].Assistant)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.bytes > 0 && l.bytes+b.bytes > l.most {
		return false
	}
	l.list = append(l.list, b)
	l.bytes += b.bytes
	return true
}

// take hands out the batches that came first, as many as go into one write.
func (l *later) take() (list []batch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for n := 0; len(l.list) > 0 && n < laterTurns; l.list = l.list[1:] {
		list = append(list, l.list[0])
		n += len(l.list[0].Turns)
		l.list[0] = batch{}
	}
	return list
}

// over says that batches need no room any more.
func (l *later) over(list []batch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, b := range list {
		l.bytes -= b.bytes
	}
}

// close takes nothing more, if nothing waits, and reports whether that is so.
func (l *later) close() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.closed = len(l.list) == 0
	return l.closed
}

// AddEarlier stores turns from before their conversation was first seen, some
// time later and in one write. It never waits.
func (p *Pipeline) AddEarlier(h History) {
	p.mu.Lock()
	closed := p.closed
	p.mu.Unlock()
	switch {
	case closed:
		h.left()
	case p.earlier.put(h):
		p.storeLater()
	default:
		p.leftOut.Add(int64(len(h.Turns)))
		p.opts().Log.Warn("earlier turns of a conversation are left out, because too many wait; they are tried again with its next request")
		h.left()
	}
}

// AddLater is Add some time later: for what is short, and was said a moment ago.
// It never waits, and reports whether there was room.
func (p *Pipeline) AddLater(turns []ledger.Turn) bool {
	p.mu.Lock()
	closed := p.closed
	p.mu.Unlock()
	switch {
	case closed:
		return false
	case len(p.wanted(turns)) == 0:
		return true
	case p.notes.put(History{Turns: turns}):
		p.storeLater()
		return true
	}
	p.opts().Log.Warn("notes to be kept are left out, because too many wait")
	return false
}

func (p *Pipeline) storeLater() {
	select {
	case p.wakeLater <- struct{}{}:
	default:
	}
}

// addLater is the loop that stores what came for later. It ends when Shutdown
// closes stop and nothing waits.
func (p *Pipeline) addLater() {
	stop := p.stop
	for {
		switch {
		case p.store(&p.notes), p.store(&p.earlier):
			continue
		case stop == nil && p.notes.close() && p.earlier.close():
			return
		case stop == nil:
			continue
		}
		select {
		case <-p.wakeLater:
		case <-stop:
			stop = nil
		}
	}
}

// store stores some of what waits, and reports whether there was something.
func (p *Pipeline) store(l *later) bool {
	list := l.take()
	if len(list) == 0 {
		return false
	}
	defer l.over(list)
	var turns []ledger.Turn
	var batches []batch
	for _, b := range list {
		err := contained(func() (err error) {
			if b.Wanted != nil {
				b.Turns, err = b.Wanted(p.base, b.Turns)
			}
			return err
		})
		if err != nil {
			p.notNow(err, b)
			continue
		}
		turns, batches = append(turns, b.Turns...), append(batches, b)
	}
	if err := contained(func() error { return p.storeAll(p.base, turns) }); err != nil {
		p.notNow(err, batches...)
	}
	return true
}

// notNow gives batches back that cannot be stored.
func (p *Pipeline) notNow(err error, list ...batch) {
	if !errors.Is(err, context.Canceled) { // else we stop
		p.opts().Log.Warn("turns of a history, or notes, cannot be kept for now", "error", err)
	}
	for _, b := range list {
		if b.Left == nil && p.holdUnkept(b.Turns, err) == nil { // nobody brings them again
			continue
		}
		b.left()
	}
}

// storeAll is addAll for turns most of which may be known: clients send their
// whole history again. What all groups have is left out before it is read for
// credentials, which takes longer than anything else.
func (p *Pipeline) storeAll(ctx context.Context, turns []ledger.Turn) error {
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
