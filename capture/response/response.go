package response

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/graphiti-proxy/graphiti-proxy/internal/budget"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

const (
	// segment is the size of the buffers for small pieces of a stream. It is small, because
	// each open stream holds one. Larger pieces go into wide buffers.
	segment = 2 << 10
	wide    = 64 << 10

	// maxHeld is the size limit of an answer that must be read whole: an unstreamed or
	// compressed one.
	maxHeld = 8 << 20

	workers    = 4    // each answer stays with one worker
	queueDepth = 4096 // segments waiting for a worker, 8 MiB of streams

	// maxReports is the most parsed answers waiting for their report. Beyond it, the
	// workers wait.
	maxReports = 2048
)

// Meta describes the body of an answer.
type Meta struct {
	Encoding string              // Content-Encoding, lower case
	Lost     func()              // called when the answer is dropped; must not block; may be nil
	Order    uint64              // answers with the same number are reported in order
	Of       dialect.Fingerprint // the caller or the conversation whose requests may refer to the answer; see Await
}

// Workers parses copies of answers in the background. It is safe for concurrent use.
type Workers struct {
	log     *slog.Logger
	workers [workers]*workerInput
	reports reports
	next    atomic.Uint64
	dropped atomic.Int64
	open    unreported
	narrow  sync.Pool // buffers of a segment
	wide    sync.Pool
	budget  *budget.Budget
	stop    chan struct{}
	wg      sync.WaitGroup
}

// workerInput is the input of one worker.
type workerInput struct {
	pieces chan chunk
	wake   chan struct{} // signals that gone is not empty

	mu   sync.Mutex    // protects gone
	gone []*transcript // dropped answers, which get no more pieces
}

// giveUp makes the worker release an answer. It does not send a piece, because none may fit
// into RAM, and does not block.
func (k *workerInput) giveUp(a *transcript) {
	k.mu.Lock()
	k.gone = append(k.gone, a)
	k.mu.Unlock()
	select {
	case k.wake <- struct{}{}:
	default:
	}
}

func (k *workerInput) reap() {
	k.mu.Lock()
	gone := k.gone
	k.gone = nil
	k.mu.Unlock()
	for _, a := range gone {
		a.lose()
	}
}

// chunk is a unit of work from a Tee.
type chunk struct {
	answer *transcript
	bytes  *[]byte
	share  budget.Share // of the bytes
	end    bool
	clean  bool
}

// transcript is the worker's state of an answer.
type transcript struct {
	reader dialect.Reader
	meta   Meta
	form   form
	sse    dialect.EventReader
	share  budget.Share // for held, and for the incomplete event
	held   []byte
	lost   bool
	done   func(dialect.Answer, bool)
	settle func() // ends the wait for the answer; later calls have no effect
}

// form is the format of an answer, detected from its bytes, because the Content-Type of
// some servers is missing or wrong.
type form uint8

// The forms of an answer.
const (
	formUnknown form = iota // only white space so far
	formEvents              // server-sent events
	formWhole               // one JSON document
)

// formOf returns the form of an answer by its first bytes, and the bytes without leading
// white space.
func formOf(b []byte) (form, []byte) {
	for len(b) > 0 && bytes.IndexByte([]byte(" \t\r\n\xef\xbb\xbf"), b[0]) >= 0 { // also a byte order mark
		b = b[1:]
	}
	switch {
	case len(b) == 0:
		return formUnknown, nil
	case b[0] == '{' || b[0] == '[':
		return formWhole, b
	}
	return formEvents, b
}

// Start starts the workers; Close ends them. Their memory counts toward b, which may be
// nil.
func Start(log *slog.Logger, b *budget.Budget) *Workers {
	w := &Workers{log: log, budget: b, stop: make(chan struct{})}
	w.narrow.New = func() any { b := make([]byte, 0, segment); return &b }
	w.wide.New = func() any { b := make([]byte, 0, wide); return &b }
	for i := range w.workers {
		w.workers[i] = &workerInput{pieces: make(chan chunk, queueDepth), wake: make(chan struct{}, 1)}
		// Ends when Close closes stop.
		w.wg.Go(func() { w.work(w.workers[i]) })
	}
	w.open.of = make(map[dialect.Fingerprint]*inFlight)
	w.reports = reports{log: log, slots: make(chan struct{}, maxReports), waiting: make(map[uint64][]func())}
	return w
}

// reports calls done for parsed answers: in order within a conversation, and in parallel
// across conversations. A report waits for the disk, and concurrent reports share a commit.
type reports struct {
	log   *slog.Logger
	slots chan struct{} // one token per waiting answer
	wg    sync.WaitGroup

	mu      sync.Mutex          // protects waiting
	waiting map[uint64][]func() // by order, after the report in progress
}

// add queues the report of an answer. It blocks while maxReports are waiting.
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

// next returns the next report of a conversation, or nil.
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

// report calls done. A panic loses only this answer.
func (r *reports) report(done func()) {
	defer func() {
		if p := recover(); p != nil {
			r.log.Error("keeping an answer panicked", "error", fmt.Sprint(p))
		}
	}()
	done()
}

// unreported counts the answers that were neither reported nor dropped.
type unreported struct {
	mu sync.Mutex
	of map[dialect.Fingerprint]*inFlight
}

// inFlight are the unreported answers of one caller or conversation.
type inFlight struct {
	count   int
	changed chan struct{} // closed when the count falls
}

func (u *unreported) begin(of dialect.Fingerprint) {
	u.mu.Lock()
	defer u.mu.Unlock()
	f := u.of[of]
	if f == nil {
		f = &inFlight{changed: make(chan struct{})}
		u.of[of] = f
	}
	f.count++
}

func (u *unreported) end(of dialect.Fingerprint) {
	u.mu.Lock()
	defer u.mu.Unlock()
	f := u.of[of]
	close(f.changed)
	f.changed = make(chan struct{})
	if f.count--; f.count == 0 {
		delete(u.of, of)
	}
}

// change returns a channel that is closed at the next report, or nil if all are reported.
func (u *unreported) change(of dialect.Fingerprint) <-chan struct{} {
	u.mu.Lock()
	defer u.mu.Unlock()
	if f := u.of[of]; f != nil {
		return f.changed
	}
	return nil
}

// Await waits until known returns true, all answers of a caller or a conversation are
// reported, or ctx ends. A client that has read an answer may refer to it before its report.
func (w *Workers) Await(ctx context.Context, of dialect.Fingerprint, known func() bool) {
	if w == nil {
		return
	}
	for {
		changed := w.open.change(of) // before known, which may miss a later report
		if changed == nil || known() {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

// Close waits until all received pieces are parsed and reported. Later pieces are lost.
func (w *Workers) Close() {
	close(w.stop)
	w.wg.Wait()
	w.reports.wg.Wait()
}

// drop counts a dropped answer.
func (w *Workers) drop(a *transcript) {
	w.dropped.Add(1)
	a.settle()
	if a.meta.Lost != nil {
		a.meta.Lost()
	}
}

// Dropped returns the number of dropped answers: the workers were too slow, the answer was
// too large, or its reader panicked.
func (w *Workers) Dropped() int64 { return w.dropped.Load() }

// Read returns a Tee for an answer, or nil if its encoding is not supported. done is called
// in another goroutine at the end of the answer, and may block; clean reports whether the
// end is complete. done is not called for a dropped answer.
func (w *Workers) Read(r dialect.Reader, m Meta, done func(a dialect.Answer, clean bool)) *Tee {
	if !decodes(m.Encoding) {
		return nil
	}
	if m.Encoding == "identity" {
		m.Encoding = ""
	}
	a := &transcript{reader: r, meta: m, done: done, share: w.budget.Share()}
	a.sse.Emit = a.reader.Event
	w.open.begin(m.Of)
	a.settle = sync.OnceFunc(func() { w.open.end(m.Of) })
	n := m.Order // one worker for a conversation, as several could change the order
	if n == 0 {
		n = w.next.Add(1)
	}
	return &Tee{w: w, share: w.budget.Share(), worker: w.workers[n%workers], answer: a}
}

// Tee copies the body of one answer. It must be used by one goroutine. It never blocks or
// fails; a nil Tee discards everything.
type Tee struct {
	w      *Workers
	worker *workerInput
	answer *transcript
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
		if t.hand(chunk{answer: t.answer, bytes: t.buf}); t.lost {
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

// buffer returns a buffer for n bytes or more.
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

// lose drops the answer.
func (t *Tee) lose() {
	t.buf, t.lost = nil, true
	t.share.Release()
	t.w.drop(t.answer)
	t.worker.giveUp(t.answer)
}

// Close ends the body and reports whether its end is complete. Further calls have no
// effect.
func (t *Tee) Close(clean bool) {
	if t == nil || t.lost {
		return
	}
	t.hand(chunk{answer: t.answer, bytes: t.buf, end: true, clean: clean})
	t.lost = true
}

func (t *Tee) hand(p chunk) {
	p.share, t.buf = t.share, nil
	select {
	case t.worker.pieces <- p:
		t.share = t.w.budget.Share()
	default:
		t.lose()
	}
}

func (w *Workers) work(k *workerInput) {
	for {
		select {
		case p := <-k.pieces:
			w.takeAndKeep(p)
		case <-k.wake:
		case <-w.stop:
			select {
			case p := <-k.pieces: // parse the received pieces
				w.takeAndKeep(p)
			default:
				k.reap()
				return
			}
		}
		k.reap()
	}
}

// takeAndKeep parses a piece and recycles its buffer.
func (w *Workers) takeAndKeep(p chunk) {
	w.take(p)
	p.share.Release()
	if p.end {
		p.answer.share.Release()
	}
	if p.bytes != nil {
		w.keep(p.bytes)
	}
}

// take parses a piece. A panic loses only this answer.
func (w *Workers) take(p chunk) {
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
		done, settle, read, clean := a.done, a.settle, a.reader.Answer(), p.clean
		w.reports.add(a.meta.Order, func() { defer settle(); done(read, clean) })
	}
	if a.lost {
		a.lose()
		w.drop(a)
	}
}

// lose releases the memory of a dropped answer.
func (a *transcript) lose() {
	a.lost, a.held, a.sse = true, nil, dialect.EventReader{}
	a.share.Release()
}

// pays reports whether the budget covers the answer's memory.
func (a *transcript) pays() bool {
	return a.share.Resize(a.share.Held(), cap(a.held)+a.sse.Size())
}

func (a *transcript) take(b []byte) {
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

// finish parses an answer that must be read whole.
func (a *transcript) finish() {
	switch {
	case a.meta.Encoding != "":
		a.decode()
	case a.form == formEvents:
		a.sse.End()
	case a.form == formWhole:
		a.reader.Body(a.held)
	}
}

// decode parses a compressed answer.
func (a *transcript) decode() {
	window := windowOf(a.meta.Encoding, a.held)
	if !a.share.Grow(window) {
		a.lost = true
		return
	}
	r, err := decode(a.meta.Encoding, bytes.NewReader(a.held))
	if err != nil {
		return // without an end, the reader makes no turn
	}
	plain := bufio.NewReader(r)
	for a.form == formUnknown {
		first, err := plain.Peek(1)
		if err != nil {
			return
		}
		if a.form, _ = formOf(first); a.form == formUnknown {
			_, _ = plain.Discard(1) // cannot fail after Peek
		}
	}
	if a.form == formEvents {
		// A truncated stream counts as far as it can be decoded.
		_, _ = io.Copy(feedWriter(a.sse.Feed), plain)
		a.sse.End()
		return
	}
	a.share.Shrink(a.share.Held() - window) // Decode accounts for its own
	if body, err := Decode(a.meta.Encoding, a.held, Decoding{Max: maxDecoded, Share: &a.share}); err == nil {
		a.reader.Body(dialect.WithoutMark(body))
	}
}
