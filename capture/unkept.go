package capture

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
)

const (
	// unkeptTurns and unkeptBytes bound the turns that wait in RAM for the
	// disk. More are refused and counted: a client's history may bring them
	// again.
	unkeptTurns = 5000
	unkeptBytes = 32 << 20

	// unkeptRetry is how often the disk is tried again.
	unkeptRetry = time.Second
)

// unkept holds turns in RAM that are to be written: notes for a moment, and all
// turns while data_dir cannot be written. They end with the process.
type unkept struct {
	wake    chan struct{} // notes wait
	writing sync.Mutex    // one after the other, or turns would be written twice

	mu     sync.Mutex    // guards what follows
	turns  []ledger.Turn // what they say has no credentials in it
	bytes  int
	lost   int       // turns since the start that were not kept
	err    error     // the last one
	remedy string    // what helps
	since  time.Time // when the disk began to fail; zero: it does not
	ended  bool      // nothing is taken any more
}

func (u *unkept) waiting() (turns int, err error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return len(u.turns), u.err
}

// turnsSize is what turns take in RAM.
func turnsSize(turns []ledger.Turn) (bytes int) {
	for i := range turns {
		bytes += turnBytes + len(turns[i].User) + len(turns[i].Assistant)
	}
	return bytes
}

// behindUnkept has turns that wait for the disk written first, so that the
// order stays. It returns an error when they still wait, or no turns are taken.
func (p *Pipeline) behindUnkept() error {
	if p.isClosed() {
		return ErrStopped
	}
	if n, _ := p.unkept.waiting(); n == 0 {
		return nil
	}
	p.flushUnkept()
	if n, err := p.unkept.waiting(); n > 0 {
		return err
	}
	return nil
}

// holdUnkept takes turns that could not be kept because the file failed. It
// returns nil when they wait now, else why they are not kept.
func (p *Pipeline) holdUnkept(turns []ledger.Turn, err error) error {
	if err == nil || !sqlite.IsFault(err) {
		return err
	}
	u := &p.unkept
	u.mu.Lock()
	room := u.putLocked(turns)
	if !room {
		u.lost += len(turns)
	}
	u.failedLocked(err, p.Fault(), p.opts().Log)
	u.mu.Unlock()
	if !room {
		return err
	}
	u.signal()
	p.noteRecorded(turns)
	return nil
}

// signal says that something waits.
func (u *unkept) signal() {
	select {
	case u.wake <- struct{}{}:
	default:
	}
}

// putLocked takes turns, unless too many wait.
func (u *unkept) putLocked(turns []ledger.Turn) bool {
	n := turnsSize(turns)
	if u.ended || len(u.turns)+len(turns) > unkeptTurns || u.bytes+n > unkeptBytes {
		return false
	}
	u.turns, u.bytes = append(u.turns, turns...), u.bytes+n
	return true
}

// failedLocked says that the disk does not take turns. What helps is kept: a full
// disk may take something small in between, after which no fault is known.
func (u *unkept) failedLocked(err error, fault *sqlite.Fault, log *slog.Logger) {
	if u.since.IsZero() {
		u.since = time.Now()
	}
	u.err = err
	if fault != nil {
		u.remedy = fault.Remedy
	}
	log.Warn("turns cannot be kept on disk", "error", err, "since", u.since, "in_memory", len(u.turns), "not_kept", u.lost)
}

// AddAsync is Add some time later: for what is short, and was said a moment ago.
// It never waits, and reports whether there was room.
func (p *Pipeline) AddAsync(turns []ledger.Turn) bool {
	if p.isClosed() {
		return false
	}
	turns = p.prepare(turns)
	u := &p.unkept
	u.mu.Lock()
	room := u.putLocked(turns)
	u.mu.Unlock()
	if !room {
		p.opts().Log.Warn("notes to be kept are left out, because too many turns wait")
		return false
	}
	u.signal()
	return true
}

// writeUnkept is the loop that writes what waits, when the disk takes it. It ends
// when Shutdown closes stop.
func (p *Pipeline) writeUnkept() {
	var retry <-chan time.Time // nil while nothing waits
	for {
		select {
		case <-p.stop:
			return
		case <-retry:
		case <-p.unkept.wake:
			if retry != nil {
				continue
			}
		}
		p.flushUnkept()
		retry = nil
		if n, _ := p.unkept.waiting(); n > 0 {
			retry = time.After(unkeptRetry)
		}
	}
}

// flushUnkept writes what waits for the disk, as far as that works.
func (p *Pipeline) flushUnkept() {
	u := &p.unkept
	u.writing.Lock()
	defer u.writing.Unlock()
	for {
		u.mu.Lock()
		turns := u.turns[:min(len(u.turns), batchTurns)]
		u.mu.Unlock()
		if len(turns) == 0 {
			return
		}
		_, err := p.keepAll(context.WithoutCancel(p.base), turns)
		u.mu.Lock()
		if sqlite.IsFault(err) {
			if u.err = err; u.since.IsZero() {
				u.failedLocked(err, p.Fault(), p.opts().Log)
			}
			u.mu.Unlock()
			return
		}
		u.turns, u.bytes = u.turns[len(turns):], u.bytes-turnsSize(turns)
		if err != nil {
			u.lost += len(turns)
		}
		left := len(u.turns)
		u.mu.Unlock()
		if err != nil {
			p.opts().Log.Error("turns that waited in RAM cannot be kept", "error", err, "turns", len(turns))
		}
		if left == 0 {
			p.keptAgain()
		}
	}
}

// keptAgain says that turns were written, and none waits.
func (p *Pipeline) keptAgain() {
	u := &p.unkept
	u.mu.Lock()
	mended := len(u.turns) == 0 && !u.since.IsZero()
	if mended {
		u.since, u.err, u.turns = time.Time{}, nil, nil
	}
	lost := u.lost
	u.mu.Unlock()
	if mended {
		p.opts().Log.Info("turns are kept on disk again", "not_kept", lost)
	}
}

// LostError says how many turns ended with the process, because the disk did not
// take them.
type LostError struct {
	Turns  int
	Err    error
	remedy string
}

// Error is one line: how many, why, and what helps.
func (e *LostError) Error() string {
	says := fmt.Sprintf("turns that waited in RAM for data_dir are lost: %d: %v", e.Turns, e.Err)
	var t *sqlite.Fault
	if !errors.As(e.Err, &t) && e.remedy != "" { // a Fault says it itself
		says += "; " + e.remedy
	}
	return says + "; a client that sends its history again brings them back"
}

// Unwrap gives the cause.
func (e *LostError) Unwrap() error { return e.Err }

// endUnkept tries a last time to write what waits for the disk. It returns what
// ends with the process.
func (p *Pipeline) endUnkept() error {
	p.flushUnkept()
	u := &p.unkept
	u.mu.Lock()
	u.ended = true
	n, err, remedy := len(u.turns), u.err, u.remedy
	u.mu.Unlock()
	if n == 0 {
		return nil
	}
	p.opts().Log.Error("turns are lost with the process: they waited in RAM for data_dir", "turns", n, "error", err)
	return &LostError{n, err, remedy}
}

// tell says how it is; wrong is what is wrong with the file.
func (u *unkept) tell(s *QueueStatus, wrong *sqlite.Fault) {
	u.mu.Lock()
	defer u.mu.Unlock()
	s.InMemory, s.NotKept = len(u.turns), u.lost
	if u.since.IsZero() {
		return
	}
	since := u.since
	s.Unkept = &since
	if wrong != nil {
		s.UnkeptError, s.UnkeptRemedy = wrong.What(), wrong.Remedy
	} else if u.err != nil {
		s.UnkeptError, s.UnkeptRemedy = u.err.Error(), u.remedy
	}
}
