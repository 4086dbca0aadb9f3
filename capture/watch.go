package capture

import (
	"bytes"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/graphiti-proxy/graphiti-proxy/budget"
	"github.com/graphiti-proxy/graphiti-proxy/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/dialect/sse"
)

const (
	// segment is how much of an answer is gathered before it is handed over.
	segment = 32 << 10

	// maxHeld bounds what is held of an answer that can only be read whole:
	// one that is not streamed, or compressed.
	maxHeld = 8 << 20

	lanes     = 4   // workers; an answer stays with one of them
	laneDepth = 256 // segments that wait for a worker, 8 MiB at most

	// maxReports bounds the answers that were read and are being reported. Then
	// the workers wait.
	maxReports = 2048
)

// Meta is what the head of an answer says about its body.
type Meta struct {
	Stream   bool   // text/event-stream
	Encoding string // Content-Encoding, lower case
	Order    uint64 // answers with the same number are reported in their order
}

// Watcher reads copies of answers in the background. It is safe for concurrent
// use.
type Watcher struct {
	log     *slog.Logger
	lanes   [lanes]*worker
	reports reports
	next    atomic.Uint32
	dropped atomic.Int64
	pool    sync.Pool
	budget  *budget.Budget
	stop    chan struct{}
	wg      sync.WaitGroup
}

// worker is what one worker is handed.
type worker struct {
	pieces chan piece
	wake   chan struct{} // gone is not empty

	mu   sync.Mutex // guards gone
	gone []*watched // answers that were given up: nothing more of them arrives
}

// giveUp has the worker give back what it holds of an answer, also when no
// piece comes: where there is no memory left, none does. It does not wait.
func (l *worker) giveUp(a *watched) {
	l.mu.Lock()
	l.gone = append(l.gone, a)
	l.mu.Unlock()
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

func (l *worker) reap() {
	l.mu.Lock()
	gone := l.gone
	l.gone = nil
	l.mu.Unlock()
	for _, a := range gone {
		a.lose()
	}
}

// piece is what a Tee hands over.
type piece struct {
	answer *watched
	bytes  *[]byte
	share  budget.Share // of the bytes
	end    bool
	clean  bool
}

// finished is an answer that has been read.
type finished struct {
	done   func(dialect.Answer, bool)
	answer dialect.Answer
	clean  bool
}

// watched is one answer on the worker's side.
type watched struct {
	reader dialect.Reader
	meta   Meta
	sse    sse.Reader
	share  budget.Share // of held, and of the event that is not whole yet
	held   []byte
	lost   bool
	done   func(dialect.Answer, bool)
}

// NewWatcher starts the workers, which Close ends. What they hold is taken of b,
// which may be nil.
func NewWatcher(log *slog.Logger, b *budget.Budget) *Watcher {
	w := &Watcher{log: log, budget: b, stop: make(chan struct{})}
	w.pool.New = func() any { b := make([]byte, 0, 2<<10); return &b }
	for i := range w.lanes {
		w.lanes[i] = &worker{pieces: make(chan piece, laneDepth), wake: make(chan struct{}, 1)}
		w.wg.Add(1)
		// Ends when Close closes stop.
		go w.work(w.lanes[i])
	}
	w.reports = reports{log: log, room: make(chan struct{}, maxReports), waiting: make(map[uint64][]finished)}
	return w
}

// reports calls what is to be done with the answers that were read. Those of one
// conversation are reported one after the other. Conversations do not wait for
// each other: what is reported waits for the disk, and what waits together
// shares a commit.
type reports struct {
	log  *slog.Logger
	room chan struct{} // one for each answer here
	wg   sync.WaitGroup

	mu      sync.Mutex            // guards waiting
	waiting map[uint64][]finished // by order, behind the one that is being reported
}

func (r *reports) add(order uint64, f finished) {
	r.room <- struct{}{}
	r.mu.Lock()
	defer r.mu.Unlock()
	list, busy := r.waiting[order]
	if busy {
		r.waiting[order] = append(list, f)
		return
	}
	r.waiting[order] = nil
	// Ends when no answer of the conversation waits.
	r.wg.Go(func() { r.run(order, f) })
}

func (r *reports) run(order uint64, f finished) {
	for more := true; more; {
		r.report(f)
		<-r.room
		f, more = r.next(order)
	}
}

func (r *reports) next(order uint64) (f finished, more bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := r.waiting[order]
	if len(list) == 0 {
		delete(r.waiting, order)
		return f, false
	}
	f, r.waiting[order] = list[0], list[1:]
	return f, true
}

// report contains panics: one answer is lost and nothing else.
func (r *reports) report(f finished) {
	defer func() {
		if p := recover(); p != nil {
			r.log.Error("keeping an answer panicked", "error", fmt.Sprint(p))
		}
	}()
	f.done(f.answer, f.clean)
}

// Close waits until what was handed over has been read and reported. What
// comes after that is lost.
func (w *Watcher) Close() {
	close(w.stop)
	w.wg.Wait()
	w.reports.wg.Wait()
}

// Dropped counts the answers that were given up: the workers could not follow,
// or an answer was too large, or broke its reader.
func (w *Watcher) Dropped() int64 { return w.dropped.Load() }

// Watch returns a Tee for one answer, or nil when the answer cannot be read.
// done is called in another goroutine when the answer has ended, and may wait;
// clean says that its end was seen. When the answer is given up done is not called.
func (w *Watcher) Watch(r dialect.Reader, m Meta, done func(a dialect.Answer, clean bool)) *Tee {
	if !decodes(m.Encoding) {
		return nil
	}
	if m.Encoding == "identity" {
		m.Encoding = ""
	}
	a := &watched{reader: r, meta: m, done: done, share: w.budget.Share()}
	a.sse.Emit = a.reader.Event
	return &Tee{w: w, share: w.budget.Share(), lane: w.lanes[w.next.Add(1)%lanes], answer: a}
}

// Tee takes the copy of one answer's body. It belongs to one goroutine. It
// never blocks and never fails; a nil Tee takes nothing.
type Tee struct {
	w      *Watcher
	lane   *worker
	answer *watched
	buf    *[]byte
	share  budget.Share // of buf
	lost   bool
}

// Write copies a piece of the body.
func (t *Tee) Write(p []byte) {
	if t == nil || t.lost {
		return
	}
	if t.buf == nil {
		t.buf = t.w.pool.Get().(*[]byte) //nolint:forcetypeassert // the pool's only type
	}
	*t.buf = append(*t.buf, p...)
	if !t.share.Grow(cap(*t.buf) - t.share.Held()) {
		t.lose()
		return
	}
	if len(*t.buf) >= segment {
		t.hand(piece{answer: t.answer, bytes: t.buf})
	}
}

// lose gives the answer up.
func (t *Tee) lose() {
	t.buf, t.lost = nil, true
	t.share.Release()
	t.w.dropped.Add(1)
	t.lane.giveUp(t.answer)
}

// Close says that no more will come, and whether the body's end was seen. It may
// be called again.
func (t *Tee) Close(clean bool) {
	if t == nil || t.lost {
		return
	}
	t.hand(piece{answer: t.answer, bytes: t.buf, end: true, clean: clean})
	t.lost = true
}

func (t *Tee) hand(p piece) {
	p.share, t.buf = t.share, nil
	select {
	case t.lane.pieces <- p:
		t.share = t.w.budget.Share()
	default:
		t.lose()
	}
}

func (w *Watcher) work(l *worker) {
	defer w.wg.Done()
	for {
		select {
		case p := <-l.pieces:
			w.takeAndKeep(p)
			l.reap()
			continue
		case <-l.wake:
			l.reap()
			continue
		case <-w.stop:
		}
		select {
		case p := <-l.pieces:
			w.takeAndKeep(p)
			l.reap()
		default:
			l.reap()
			return
		}
	}
}

// takeAndKeep reads one piece, and keeps its buffer for another.
func (w *Watcher) takeAndKeep(p piece) {
	w.take(p)
	p.share.Release()
	if p.end {
		p.answer.share.Release()
	}
	if p.bytes != nil && cap(*p.bytes) <= 2*segment {
		*p.bytes = (*p.bytes)[:0]
		w.pool.Put(p.bytes)
	}
}

// take reads one piece. A panic costs this answer and nothing else.
func (w *Watcher) take(p piece) {
	defer func() {
		if r := recover(); r != nil {
			p.answer.lost = true
			w.dropped.Add(1)
			w.log.Error("reading an answer panicked", "error", fmt.Sprint(r))
		}
	}()
	a := p.answer
	if a.lost {
		a.lose()
		return
	}
	if p.bytes != nil {
		a.take(*p.bytes)
	}
	if p.end && !a.lost {
		a.finish()
	}
	if p.end && !a.lost {
		w.reports.add(a.meta.Order, finished{a.done, a.reader.Answer(), p.clean})
	}
	if a.lost {
		a.lose()
		w.dropped.Add(1)
	}
}

// lose gives back what is held of an answer that is given up.
func (a *watched) lose() {
	a.lost, a.held, a.sse = true, nil, sse.Reader{}
	a.share.Release()
}

// pays reports whether there is memory for what is held now.
func (a *watched) pays() bool {
	return a.share.Resize(a.share.Held(), cap(a.held)+a.sse.Size())
}

func (a *watched) take(b []byte) {
	if a.meta.Stream && a.meta.Encoding == "" {
		a.sse.Feed(b)
		a.lost = !a.pays()
		return
	}
	if len(a.held)+len(b) > maxHeld {
		a.lost = true
		return
	}
	a.held = append(a.held, b...)
	a.lost = !a.pays()
}

// finish reads what could only be read whole.
func (a *watched) finish() {
	if a.meta.Encoding == "" {
		if a.meta.Stream {
			a.sse.End()
		} else {
			a.reader.Body(a.held)
		}
		return
	}
	if !a.meta.Stream {
		plain, err := Decode(a.meta.Encoding, a.held, Decoding{Max: maxDecoded, Share: &a.share})
		if err == nil {
			a.reader.Body(plain)
		}
		return
	}
	if !a.share.Grow(windowOf(a.meta.Encoding, a.held)) {
		a.lost = true
		return
	}
	plain, err := decode(a.meta.Encoding, bytes.NewReader(a.held))
	if err != nil {
		return // the reader has seen no end: no turn
	}
	// What could be decoded counts, also of a stream that was cut.
	_, _ = copyTo(plain, a.sse.Feed)
	a.sse.End()
}
