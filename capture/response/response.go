package response

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/graphiti-proxy/graphiti-proxy/internal/budget"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

const (
	// segment is how many bytes of a stream are gathered before a worker gets them:
	// small, because each of many open streams holds one. Larger pieces are gathered in
	// wide buffers.
	segment = 2 << 10
	wide    = 64 << 10

	// maxHeld bounds how many bytes are held of an answer that can only be read whole:
	// one that is not streamed, or is compressed.
	maxHeld = 8 << 20

	workers    = 4    // workers; an answer stays with one of them
	queueDepth = 4096 // segments that wait for a worker, 8 MiB of streams

	// maxReports bounds the answers that were read and are being reported. When there
	// are as many, the workers wait.
	maxReports = 2048
)

// Meta is what the head of an answer says about its body.
type Meta struct {
	Encoding string // Content-Encoding, lower case
	Lost     func() // is called when the answer is given up, and must not block; may be nil
	Order    uint64 // answers with the same number are reported in their order
}

// Workers reads copies of answers in the background. It is safe for concurrent
// use.
type Workers struct {
	log     *slog.Logger
	workers [workers]*worker
	reports reports
	next    atomic.Uint32
	dropped atomic.Int64
	narrow  sync.Pool // buffers of a segment
	wide    sync.Pool
	budget  *budget.Budget
	stop    chan struct{}
	wg      sync.WaitGroup
}

// worker is one worker's input.
type worker struct {
	pieces chan piece
	wake   chan struct{} // gone is not empty

	mu   sync.Mutex // guards gone
	gone []*answer  // answers that were given up: they get no more pieces
}

// giveUp makes the worker release an answer, without a piece of it: when there is no RAM
// left, none comes. It does not wait.
func (k *worker) giveUp(a *answer) {
	k.mu.Lock()
	k.gone = append(k.gone, a)
	k.mu.Unlock()
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

func (k *worker) reap() {
	k.mu.Lock()
	gone := k.gone
	k.gone = nil
	k.mu.Unlock()
	for _, a := range gone {
		a.lose()
	}
}

// piece is what a Tee hands over.
type piece struct {
	answer *answer
	bytes  *[]byte
	share  budget.Share // of the bytes
	end    bool
	clean  bool
}

// answer is one answer on the worker's side.
type answer struct {
	reader dialect.Reader
	meta   Meta
	form   form
	sse    dialect.EventReader
	share  budget.Share // of held, and of the event that is not whole yet
	held   []byte
	lost   bool
	done   func(dialect.Answer, bool)
}

// form is how an answer is sent. Its bytes tell, because the Content-Type of some servers is
// missing or names the other one.
type form uint8

// The forms of an answer.
const (
	formUnknown form = iota // only white space came so far
	formEvents              // server-sent events
	formWhole               // one JSON document
)

// formOf returns the form of an answer that begins with some bytes, and the bytes from
// the first that tells on.
func formOf(b []byte) (form, []byte) {
	b = bytes.TrimLeft(b, " \t\r\n")
	switch {
	case len(b) == 0:
		return formUnknown, nil
	case b[0] == '{' || b[0] == '[':
		return formWhole, b
	}
	return formEvents, b
}

// Start starts the workers; Close ends them. What they hold counts towards b, which may be
// nil.
func Start(log *slog.Logger, b *budget.Budget) *Workers {
	w := &Workers{log: log, budget: b, stop: make(chan struct{})}
	w.narrow.New = func() any { b := make([]byte, 0, segment); return &b }
	w.wide.New = func() any { b := make([]byte, 0, wide); return &b }
	for i := range w.workers {
		w.workers[i] = &worker{pieces: make(chan piece, queueDepth), wake: make(chan struct{}, 1)}
		// Ends when Close closes stop.
		w.wg.Go(func() { w.work(w.workers[i]) })
	}
	w.reports = reports{log: log, slots: make(chan struct{}, maxReports), waiting: make(map[uint64][]func())}
	return w
}

// reports calls done for the answers that were read: one after the other for those of one
// conversation, while conversations do not wait for each other. A report waits for the
// disk, and those that wait together share a commit.
type reports struct {
	log   *slog.Logger
	slots chan struct{} // holds one for each answer here
	wg    sync.WaitGroup

	mu      sync.Mutex          // guards waiting
	waiting map[uint64][]func() // by order, behind the one that is being reported
}

// add has done called for an answer. It waits while there are maxReports.
func (r *reports) add(order uint64, done func()) {
	r.slots <- struct{}{}
	r.mu.Lock()
	defer r.mu.Unlock()
	list, busy := r.waiting[order]
	if busy {
		r.waiting[order] = append(list, done)
		return
	}
	r.waiting[order] = nil
	// Ends when no answer of the conversation waits.
	r.wg.Go(func() { r.run(order, done) })
}

func (r *reports) run(order uint64, done func()) {
	for done != nil {
		r.report(done)
		<-r.slots
		done = r.next(order)
	}
}

// next returns the next report of a conversation; nil: none waits.
func (r *reports) next(order uint64) (done func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := r.waiting[order]
	if len(list) == 0 {
		delete(r.waiting, order)
		return nil
	}
	done, r.waiting[order] = list[0], list[1:]
	return done
}

// report calls done. A panic loses this one answer only.
func (r *reports) report(done func()) {
	defer func() {
		if p := recover(); p != nil {
			r.log.Error("keeping an answer panicked", "error", fmt.Sprint(p))
		}
	}()
	done()
}

// Close waits until everything that the workers have got is read and reported. What comes
// afterwards is lost.
func (w *Workers) Close() {
	close(w.stop)
	w.wg.Wait()
	w.reports.wg.Wait()
}

// drop counts an answer that is given up.
func (w *Workers) drop(a *answer) {
	w.dropped.Add(1)
	if a.meta.Lost != nil {
		a.meta.Lost()
	}
}

// Dropped returns how many answers were given up: the workers were too slow, or the answer
// was too large, or its reader panicked.
func (w *Workers) Dropped() int64 { return w.dropped.Load() }

// Read returns a Tee for one answer, or nil when the answer cannot be read. done is called
// in another goroutine when the answer has ended, and may wait; clean says that its end
// was seen. When the answer is given up, done is not called.
func (w *Workers) Read(r dialect.Reader, m Meta, done func(a dialect.Answer, clean bool)) *Tee {
	if !decodes(m.Encoding) {
		return nil
	}
	if m.Encoding == "identity" {
		m.Encoding = ""
	}
	a := &answer{reader: r, meta: m, done: done, share: w.budget.Share()}
	a.sse.Emit = a.reader.Event
	return &Tee{w: w, share: w.budget.Share(), worker: w.workers[w.next.Add(1)%workers], answer: a}
}

// Tee takes the copy of one answer's body. It belongs to one goroutine. It
// never blocks and never fails; a nil Tee takes nothing.
type Tee struct {
	w      *Workers
	worker *worker
	answer *answer
	buf    *[]byte
	share  budget.Share // of buf
	lost   bool
}

// Write copies a piece of the body.
func (t *Tee) Write(p []byte) {
	if t == nil || t.lost {
		return
	}
	if t.buf != nil && len(*t.buf)+len(p) > cap(*t.buf) {
		if t.hand(piece{answer: t.answer, bytes: t.buf}); t.lost {
			return
		}
	}
	if t.buf == nil {
		t.buf = t.w.buffer(len(p))
	}
	*t.buf = append(*t.buf, p...)
	if more := cap(*t.buf) - t.share.Held(); more > 0 && !t.share.Grow(more) {
		t.lose()
	}
}

// buffer is one for a piece of n bytes, and what may come behind it.
func (w *Workers) buffer(n int) *[]byte {
	if n > segment {
		return w.wide.Get().(*[]byte) //nolint:forcetypeassert // the pool's only type
	}
	return w.narrow.Get().(*[]byte) //nolint:forcetypeassert // the pool's only type
}

func (w *Workers) keep(b *[]byte) {
	*b = (*b)[:0]
	switch cap(*b) {
	case segment:
		w.narrow.Put(b)
	case wide:
		w.wide.Put(b)
	}
}

// lose gives the answer up.
func (t *Tee) lose() {
	t.buf, t.lost = nil, true
	t.share.Release()
	t.w.drop(t.answer)
	t.worker.giveUp(t.answer)
}

// Close notes that no more will come, and whether the body's end was seen. It may be called
// several times.
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
	case t.worker.pieces <- p:
		t.share = t.w.budget.Share()
	default:
		t.lose()
	}
}

func (w *Workers) work(k *worker) {
	for {
		select {
		case p := <-k.pieces:
			w.takeAndKeep(p)
		case <-k.wake:
		case <-w.stop:
			select {
			case p := <-k.pieces: // what the worker has got is read
				w.takeAndKeep(p)
			default:
				k.reap()
				return
			}
		}
		k.reap()
	}
}

// takeAndKeep reads one piece, and keeps its buffer for another.
func (w *Workers) takeAndKeep(p piece) {
	w.take(p)
	p.share.Release()
	if p.end {
		p.answer.share.Release()
	}
	if p.bytes != nil {
		w.keep(p.bytes)
	}
}

// take reads one piece. A panic loses this one answer only.
func (w *Workers) take(p piece) {
	defer func() {
		if r := recover(); r != nil {
			p.answer.lost = true
			w.drop(p.answer)
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
		done, read, clean := a.done, a.reader.Answer(), p.clean
		w.reports.add(a.meta.Order, func() { done(read, clean) })
	}
	if a.lost {
		a.lose()
		w.drop(a)
	}
}

// lose releases what is held of an answer that is given up.
func (a *answer) lose() {
	a.lost, a.held, a.sse = true, nil, dialect.EventReader{}
	a.share.Release()
}

// pays reports whether there is enough RAM for what the answer holds now.
func (a *answer) pays() bool {
	return a.share.Resize(a.share.Held(), cap(a.held)+a.sse.Size())
}

func (a *answer) take(b []byte) {
	if a.meta.Encoding == "" && a.form == formUnknown {
		a.form, b = formOf(b)
	}
	if a.form == formEvents {
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

// finish reads an answer that can only be read whole.
func (a *answer) finish() {
	switch {
	case a.meta.Encoding != "":
		a.decode()
	case a.form == formEvents:
		a.sse.End()
	case a.form == formWhole:
		a.reader.Body(a.held)
	}
}

// decode reads an answer that is compressed.
func (a *answer) decode() {
	window := windowOf(a.meta.Encoding, a.held)
	if !a.share.Grow(window) {
		a.lost = true
		return
	}
	r, err := decode(a.meta.Encoding, bytes.NewReader(a.held))
	if err != nil {
		return // the reader has seen no end: no turn
	}
	plain := bufio.NewReader(r)
	for a.form == formUnknown {
		first, err := plain.Peek(1)
		if err != nil {
			return
		}
		if a.form, _ = formOf(first); a.form == formUnknown {
			_, _ = plain.Discard(1) // it was there a moment ago
		}
	}
	if a.form == formEvents {
		// What could be decoded counts, also of a stream that was cut.
		_, _ = io.Copy(feedWriter(a.sse.Feed), plain)
		a.sse.End()
		return
	}
	a.share.Shrink(a.share.Held() - window) // Decode pays for its own
	if body, err := Decode(a.meta.Encoding, a.held, Decoding{Max: maxDecoded, Share: &a.share}); err == nil {
		a.reader.Body(body)
	}
}
