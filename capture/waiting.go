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
	// waitingTurns and waitingBytes bound the turns that wait in RAM. More are refused
	// and counted: a client's history may bring them again.
	waitingTurns = 5000
	waitingBytes = 32 << 20

	// historyBytes bounds the histories that wait, and those that are being recorded:
	// after a restart all conversations come back with theirs at once.
	historyBytes = 64 << 20

	// batchTurns is how many turns a write has, or a few more: the list that reaches it
	// is written whole.
	batchTurns = 256

	// turnBytes is about what a turn takes beside what was said in it.
	turnBytes = 512
)

// History holds earlier turns of a conversation, read from one of its requests, or
// turns that wait for the disk.
type History struct {
	Turns []ledger.Turn

	// Wanted returns those of the turns that are to be kept. It may wait. nil: all of
	// them are.
	Wanted func(ctx context.Context, turns []ledger.Turn) ([]ledger.Turn, error)
}

// waiting holds turns in RAM until they are written, in two lanes. The first holds
// notes, for a moment, and all turns while data_dir cannot be written. The second,
// behind it, holds histories, for which no request waits. What still waits when the
// process ends is lost.
type waiting struct {
	wake    chan struct{} // something waits; more than one says nothing new
	writing sync.Mutex    // one writes at a time, or turns would be written twice

	mu        sync.Mutex // guards what follows
	turns     lane       // without credentials
	histories lane       // as they came, credentials included
	leftOut   int        // turns of histories for which there was no room
	lost      int        // turns since the start that were not kept
	err       error      // of the disk, the last one
	remedy    string     // what helps
	since     time.Time  // when the disk began to fail; zero: it does not
	ended     bool       // nothing is taken any more
}

func newWaiting() waiting {
	return waiting{
		wake:      make(chan struct{}, 1),
		turns:     lane{maxTurns: waitingTurns, maxBytes: waitingBytes},
		histories: lane{maxTurns: historyBytes / turnBytes, maxBytes: historyBytes},
	}
}

// lane holds what waits, in its order and within bounds.
type lane struct {
	list         []History
	turns, bytes int
	maxTurns     int
	maxBytes     int
}

// put adds a history, unless too much waits. A history with more bytes than the lane may
// hold counts as a full lane, so that it waits by itself.
func (l *lane) put(h History) bool {
	n := min(bytesOf(h.Turns), l.maxBytes)
	if l.turns+len(h.Turns) > l.maxTurns || l.bytes+n > l.maxBytes {
		return false
	}
	l.list, l.turns, l.bytes = append(l.list, h), l.turns+len(h.Turns), l.bytes+n
	return true
}

// first returns what came first, as far as it goes into one write. It waits, and takes
// room, until it is done.
func (l *lane) first() []History {
	n := 0
	for turns := 0; n < len(l.list) && turns < batchTurns; n++ {
		turns += len(l.list[n].Turns)
	}
	return l.list[:n]
}

// done takes the first ones out.
func (l *lane) done(list []History) {
	for i := range list {
		l.turns -= len(list[i].Turns)
		l.bytes -= min(bytesOf(list[i].Turns), l.maxBytes)
	}
	clear(list)
	if l.list = l.list[len(list):]; len(l.list) == 0 {
		l.list = nil
	}
}

// bytesOf are those that turns take in RAM.
func bytesOf(turns []ledger.Turn) (bytes int) {
	for i := range turns {
		bytes += turnBytes + len(turns[i].User) + len(turns[i].Assistant)
	}
	return bytes
}

// put takes turns, unless too many wait.
func (w *waiting) put(turns []ledger.Turn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.putLocked(turns)
}

func (w *waiting) putLocked(turns []ledger.Turn) bool {
	if len(turns) == 0 {
		return true
	}
	if w.ended || !w.turns.put(History{Turns: turns}) {
		return false
	}
	w.signal()
	return true
}

func (w *waiting) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// hold takes turns that the disk did not, and counts those for which there is no
// room. It reports whether they wait now.
func (w *waiting) hold(turns []ledger.Turn, err error, fault *sqlite.Fault, log *slog.Logger) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	room := w.putLocked(turns)
	if !room {
		w.lost += len(turns)
	}
	w.failedLocked(err, fault, log)
	return room
}

// putHistory takes a history, and counts its turns when there is no room.
func (w *waiting) putHistory(h History) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.histories.put(h) {
		w.leftOut += len(h.Turns)
		return false
	}
	w.signal()
	return true
}

// first returns what came first in a lane, as far as it goes into one write.
func (w *waiting) first(l *lane) []History {
	w.mu.Lock()
	defer w.mu.Unlock()
	return l.first()
}

// done ends the wait of the first of a lane: they are written, or err says why they
// never will be.
func (w *waiting) done(l *lane, list []History, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := l.turns
	l.done(list)
	if err != nil {
		w.lost += before - l.turns
	}
}

// failed says that the disk does not take turns.
func (w *waiting) failed(err error, fault *sqlite.Fault, log *slog.Logger) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err = err; w.since.IsZero() {
		w.failedLocked(err, fault, log)
	}
}

// failedLocked notes what helps, too, and keeps it: a full disk may take something
// small in between, after which no fault is known.
func (w *waiting) failedLocked(err error, fault *sqlite.Fault, log *slog.Logger) {
	if w.since.IsZero() {
		w.since = time.Now()
	}
	w.err = err
	if fault != nil {
		w.remedy = fault.Remedy
	}
	log.Warn("turns cannot be kept on disk", "error", err, "since", w.since, "in_memory", w.turns.turns, "not_kept", w.lost)
}

// mended says that turns were written; where none waits, the disk takes them again.
func (w *waiting) mended(log *slog.Logger) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.turns.turns == 0 && !w.since.IsZero() {
		w.since, w.err = time.Time{}, nil
		log.Info("turns are kept on disk again", "not_kept", w.lost)
	}
}

// end takes no more turns, and returns what ends with the process.
func (w *waiting) end(log *slog.Logger) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	n := w.turns.turns
	if n == 0 {
		return nil
	}
	log.Error("turns are lost with the process: they waited in RAM for data_dir", "turns", n, "error", w.err)
	return &LostError{n, w.err, w.remedy}
}

// status says how it is; wrong is what is wrong with the file.
func (w *waiting) status(s *QueueStatus, wrong *sqlite.Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s.InMemory, s.NotKept, s.LeftOut = w.turns.turns, w.lost, w.leftOut
	if w.since.IsZero() {
		return
	}
	since := w.since
	s.Unkept = &since
	if wrong != nil {
		s.UnkeptError, s.UnkeptRemedy = wrong.What(), wrong.Remedy
	} else if w.err != nil {
		s.UnkeptError, s.UnkeptRemedy = w.err.Error(), w.remedy
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
