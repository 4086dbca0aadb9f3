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
	// waitingTurns and waitingBytes limit the turns waiting in RAM. Further turns are
	// rejected and counted: a client's history may bring them again.
	waitingTurns = 5000
	waitingBytes = 32 << 20

	// historyBytes limits the histories that are waiting or being recorded: after a restart
	// all conversations resend theirs at once.
	historyBytes = 64 << 20

	// batchTurns is the approximate number of turns per write. A batch ends with the
	// history that reaches it.
	batchTurns = 256

	// turnBytes is the approximate size of a turn without its texts.
	turnBytes = 512
)

// History holds earlier turns of a conversation, parsed from one of its requests, or turns
// waiting for the disk.
type History struct {
	Turns []ledger.Turn

	// Wanted returns the turns to record. It may block. nil selects all turns. stored reports which
	// turns the ledger has.
	Wanted func(ctx context.Context, turns []ledger.Turn, stored []bool) ([]ledger.Turn, error)
}

// waiting holds turns in RAM until they are written, in two lanes. The first holds notes
// briefly, and all turns while data_dir cannot be written. The second holds histories,
// written after the first because no request waits for them. Turns still waiting at the end
// of the process are lost.
type waiting struct {
	wake    chan struct{} // capacity 1: further wakes add nothing
	writing sync.Mutex    // held by the only writer, so that no turn is written twice

	mu        sync.Mutex // protects the fields below
	turns     lane       // redacted
	histories lane       // raw, including credentials
	leftOut   int        // turns of rejected histories
	lost      int        // turns lost since the start
	err       error      // latest error of the disk
	remedy    string     // remedy for err
	since     time.Time  // start of the disk failure, or zero
	ended     bool       // no more turns are accepted
}

func newWaiting() waiting {
	return waiting{
		wake:      make(chan struct{}, 1),
		turns:     lane{maxTurns: waitingTurns, maxBytes: waitingBytes},
		histories: lane{maxTurns: historyBytes / turnBytes, maxBytes: historyBytes},
	}
}

// lane is a bounded FIFO queue of histories.
type lane struct {
	list         []History
	turns, bytes int
	maxTurns     int
	maxBytes     int
}

// put appends a history unless the lane is full. A history larger than maxBytes counts as
// maxBytes, so it can wait alone.
func (l *lane) put(h History) bool {
	n := min(bytesOf(h.Turns), l.maxBytes)
	if l.turns+len(h.Turns) > l.maxTurns || l.bytes+n > l.maxBytes {
		return false
	}
	l.list, l.turns, l.bytes = append(l.list, h), l.turns+len(h.Turns), l.bytes+n
	return true
}

// first returns the first batch. The batch occupies the lane until done.
func (l *lane) first() []History {
	n := 0
	for turns := 0; n < len(l.list) && turns < batchTurns; n++ {
		turns += len(l.list[n].Turns)
	}
	return l.list[:n]
}

// done removes a batch returned by first.
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

// bytesOf returns the approximate size of turns in RAM.
func bytesOf(turns []ledger.Turn) (bytes int) {
	for i := range turns {
		bytes += turnBytes + len(turns[i].User) + len(turns[i].Assistant)
	}
	return bytes
}

// put queues turns unless the lane is full.
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

// hold queues turns that the disk rejected, and counts them as lost if the lane is full. It
// reports whether they are queued.
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

// putHistory queues a history, or counts its turns if the lane is full.
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

// first returns the first batch of a lane.
func (w *waiting) first(l *lane) []History {
	w.mu.Lock()
	defer w.mu.Unlock()
	return l.first()
}

// done removes a batch from its lane. The batch was written unless err is set; then it is
// lost.
func (w *waiting) done(l *lane, list []History, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	before := l.turns
	l.done(list)
	if err != nil {
		w.lost += before - l.turns
	}
}

// failed records a failed write.
func (w *waiting) failed(err error, fault *sqlite.Fault, log *slog.Logger) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err = err; w.since.IsZero() {
		w.failedLocked(err, fault, log)
	}
}

// failedLocked also stores the remedy. A full disk may accept a small write in between,
// which clears the file's fault.
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

// mended records a successful write. The failure is over once the lane of turns is empty.
func (w *waiting) mended(log *slog.Logger) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.turns.turns == 0 && !w.since.IsZero() {
		w.since, w.err = time.Time{}, nil
		log.Info("turns are kept on disk again", "not_kept", w.lost)
	}
}

// end rejects further turns, and returns a LostError if turns are still queued.
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

// status sets the fields about turns in RAM; wrong is the fault of the file, or nil.
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

// LostError counts the turns lost at the end of the process, because the disk rejected
// them.
type LostError struct {
	Turns  int
	Err    error
	remedy string
}

// Error returns one line with the number, the cause and the remedy.
func (e *LostError) Error() string {
	says := fmt.Sprintf("turns that waited in RAM for data_dir are lost: %d: %v", e.Turns, e.Err)
	var t *sqlite.Fault
	if !errors.As(e.Err, &t) && e.remedy != "" { // a Fault includes its remedy
		says += "; " + e.remedy
	}
	return says + "; a client that sends its history again brings them back"
}

// Unwrap returns the cause.
func (e *LostError) Unwrap() error { return e.Err }

// contained converts a panic into an error.
func contained(f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panicked: %v", r)
		}
	}()
	return f()
}
