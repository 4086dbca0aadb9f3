package capture

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/database"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
)

const (
	// waitingTurns and waitingBytes limit the turns waiting in RAM. Further turns are
	// rejected and counted: a client's history may bring them again.
	waitingTurns = 5000
	waitingBytes = 32 << 20

	// historyBytes limits the histories that are waiting or being recorded: after a restart
	// all conversations resend theirs at once. A larger history can wait alone.
	historyBytes = 64 << 20

	batchTurns = 256 // waiting turns per write
	turnBytes  = 512 // approximate size of a turn without its texts
)

// History holds earlier turns of a conversation, parsed from one of its requests.
type History struct {
	Turns []ledger.Turn

	// Wanted returns the turns to record. It may block. nil selects all turns. stored reports which
	// turns the ledger has.
	Wanted func(ctx context.Context, turns []ledger.Turn, stored []bool) ([]ledger.Turn, error)
}

// waiting holds turns in RAM until they are written: notes briefly, all turns while data_dir
// cannot be written, and histories, which are written after the others because no request waits
// for them. Turns still waiting at the end of the process are lost.
type waiting struct {
	wake    chan struct{} // capacity 1: further wakes add nothing
	writing sync.Mutex    // held by the only writer, so that no turn is written twice

	mu             sync.Mutex    // protects the fields below
	turns          []ledger.Turn // redacted
	bytes          int           // size of turns
	histories      []History     // raw, including credentials; the first is being recorded
	bytesOfHistory int           // size of histories
	leftOut        int           // turns of rejected histories
	lost           int           // turns lost since the start
	err            error         // latest error of the disk
	remedy         string        // remedy for err
	since          time.Time     // start of the disk failure, or zero
	ended          bool          // no more turns are accepted
}

// bytesOf returns the approximate size of turns in RAM.
func bytesOf(turns []ledger.Turn) (bytes int) {
	for i := range turns {
		bytes += turnBytes + len(turns[i].User) + len(turns[i].Assistant)
	}
	return bytes
}

// put queues turns unless there is no room.
func (w *waiting) put(turns []ledger.Turn) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.putLocked(turns)
}

func (w *waiting) putLocked(turns []ledger.Turn) bool {
	if len(turns) == 0 {
		return true
	}
	n := bytesOf(turns)
	if w.ended || len(w.turns)+len(turns) > waitingTurns || w.bytes+n > waitingBytes {
		return false
	}
	w.turns, w.bytes = append(w.turns, turns...), w.bytes+n
	w.signal()
	return true
}

func (w *waiting) signal() {
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// hold queues turns that the disk rejected, and counts them as lost if there is no room. It
// reports whether they are queued.
func (w *waiting) hold(turns []ledger.Turn, err error, fault *database.Fault, log *slog.Logger) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	room := w.putLocked(turns)
	if !room {
		w.lost += len(turns)
	}
	w.failedLocked(err, fault, log)
	return room
}

// first returns a copy of the first turns, for one write.
func (w *waiting) first() []ledger.Turn {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Clone(w.turns[:min(len(w.turns), batchTurns)])
}

// done removes the first turns. They were written unless err is set; then they are lost.
func (w *waiting) done(turns []ledger.Turn, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if err != nil {
		w.lost += len(turns)
	}
	w.bytes -= bytesOf(turns)
	clear(w.turns[:len(turns)])
	if w.turns = w.turns[len(turns):]; len(w.turns) == 0 {
		w.turns = nil
	}
}

// putHistory queues a history, or counts its turns if there is no room.
func (w *waiting) putHistory(h History) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := bytesOf(h.Turns)
	if w.bytesOfHistory > 0 && w.bytesOfHistory+n > historyBytes {
		w.leftOut += len(h.Turns)
		return false
	}
	w.histories, w.bytesOfHistory = append(w.histories, h), w.bytesOfHistory+n
	w.signal()
	return true
}

// history returns the first history. It occupies its room until historyDone.
func (w *waiting) history() (h History, ok bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.histories) == 0 {
		return h, false
	}
	return w.histories[0], true
}

func (w *waiting) historyDone() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.bytesOfHistory -= bytesOf(w.histories[0].Turns)
	w.histories[0] = History{}
	w.histories = w.histories[1:]
}

// failed records a failed write.
func (w *waiting) failed(err error, fault *database.Fault, log *slog.Logger) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err = err; w.since.IsZero() {
		w.failedLocked(err, fault, log)
	}
}

// failedLocked also stores the remedy: a full disk may accept a small write, which clears the file's fault.
func (w *waiting) failedLocked(err error, fault *database.Fault, log *slog.Logger) {
	if w.since.IsZero() {
		w.since = time.Now()
	}
	w.err = err
	if fault != nil {
		w.remedy = fault.Remedy
	}
	log.Warn("turns cannot be kept on disk", "error", err, "since", w.since, "in_memory", len(w.turns), "not_kept", w.lost)
}

// mended records a successful write. The failure is over once the lane of turns is empty.
func (w *waiting) mended(log *slog.Logger) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.turns) == 0 && !w.since.IsZero() {
		w.since, w.err = time.Time{}, nil
		log.Info("turns are kept on disk again", "not_kept", w.lost)
	}
}

// end rejects further turns, and returns a LostError if turns are still queued.
func (w *waiting) end(log *slog.Logger) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.ended = true
	n := len(w.turns)
	if n == 0 {
		return nil
	}
	log.Error("turns are lost with the process: they waited in RAM for data_dir", "turns", n, "error", w.err)
	return &LostError{n, w.err, w.remedy}
}

// status sets the fields about turns in RAM; wrong is the fault of the file, or nil.
func (w *waiting) status(s *QueueStatus, wrong *database.Fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s.InMemory, s.NotKept, s.LeftOut = len(w.turns), w.lost, w.leftOut
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
	var t *database.Fault
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
