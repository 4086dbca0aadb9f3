package response

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/graphiti-proxy/graphiti-proxy/internal/budget"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

const (
	// maxHeld is the size limit of an answer that must be read whole: an unstreamed or
	// compressed one.
	maxHeld = 8 << 20

	// maxReports is the most answers waiting for their report. Beyond it, answers are dropped.
	maxReports = 2048
)

// Meta describes the body of an answer.
type Meta struct {
	Encoding string              // Content-Encoding, lower case
	Lost     func()              // called when the answer is dropped; must not block; may be nil
	Order    uint64              // answers with the same number are reported in order
	Of       dialect.Fingerprint // the caller or the conversation whose requests may refer to the answer; see Await
}

// Readers parses copies of answers. It is safe for concurrent use.
type Readers struct {
	log     *slog.Logger
	reports reports
	dropped atomic.Int64
	open    unreported
	budget  *budget.Budget
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

// New returns Readers. Their memory counts toward b, which may be nil.
func New(log *slog.Logger, b *budget.Budget) *Readers {
	return &Readers{
		log: log, budget: b, open: unreported{of: make(map[dialect.Fingerprint]*inFlight)},
		reports: reports{log: log, slots: make(chan struct{}, maxReports), last: make(map[uint64]chan struct{})},
	}
}

// reports calls done for parsed answers: in order within a conversation, and in parallel
// across conversations. A report waits for the disk, and concurrent reports share a commit.
type reports struct {
	log   *slog.Logger
	slots chan struct{} // one token per waiting answer
	wg    sync.WaitGroup

	mu     sync.Mutex               // protects the fields below
	last   map[uint64]chan struct{} // closed after the last waiting report of a conversation, by its order
	closed bool
}

// add queues the report of an answer. It returns false if maxReports are waiting, or after close.
func (r *reports) add(order uint64, done func()) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return false
	}
	select {
	case r.slots <- struct{}{}:
	default:
		return false
	}
	before, ended := r.last[order], make(chan struct{})
	r.last[order] = ended
	// Ends after the earlier reports of the conversation.
	r.wg.Go(func() {
		if before != nil {
			<-before
		}
		r.report(done)
		<-r.slots
		r.mu.Lock()
		defer r.mu.Unlock()
		if close(ended); r.last[order] == ended {
			delete(r.last, order)
		}
	})
	return true
}

// close waits for all reports.
func (r *reports) close() {
	r.mu.Lock()
	r.closed = true
	r.mu.Unlock()
	r.wg.Wait()
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

// unreported are the answers that were neither reported nor dropped.
type unreported struct {
	mu sync.Mutex
	of map[dialect.Fingerprint]*inFlight
}

// inFlight are the unreported answers of one caller or conversation.
type inFlight struct {
	open    []*Tee
	changed chan struct{} // closed when one is reported
}

func (u *unreported) begin(t *Tee) {
	u.mu.Lock()
	defer u.mu.Unlock()
	f := u.of[t.meta.Of]
	if f == nil {
		f = &inFlight{changed: make(chan struct{})}
		u.of[t.meta.Of] = f
	}
	f.open = append(f.open, t)
}

func (u *unreported) end(t *Tee) {
	u.mu.Lock()
	defer u.mu.Unlock()
	f := u.of[t.meta.Of]
	close(f.changed)
	f.changed = make(chan struct{})
	if f.open = slices.DeleteFunc(f.open, func(o *Tee) bool { return o == t }); len(f.open) == 0 {
		delete(u.of, t.meta.Of)
	}
}

func (u *unreported) earlier(of dialect.Fingerprint, order uint64) (list []*Tee) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if f := u.of[of]; f != nil {
		list = slices.DeleteFunc(slices.Clone(f.open), func(t *Tee) bool { return t.meta.Order != order && !t.ended.Load() })
	}
	return list
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
func (w *Readers) Await(ctx context.Context, of dialect.Fingerprint, known func() bool) {
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

// Earlier returns a function that waits until those answers of a caller are reported that are
// unreported now, or ctx ends. In other conversations only those count that have ended.
func (w *Readers) Earlier(of dialect.Fingerprint, order uint64) (wait func(ctx context.Context)) {
	var earlier []*Tee
	if w != nil {
		earlier = w.open.earlier(of, order)
	}
	return func(ctx context.Context) {
		for _, t := range earlier {
			select {
			case <-t.reported:
			case <-ctx.Done():
			}
		}
	}
}

// Close waits until all ended answers are reported. Later answers are dropped.
func (w *Readers) Close() { w.reports.close() }

// Dropped returns the number of dropped answers: there were too many, the answer was too
// large, or its reader panicked.
func (w *Readers) Dropped() int64 { return w.dropped.Load() }

// Read returns a Tee for an answer, or nil if its encoding is not supported. done is called
// in another goroutine after the end of the answer, and may block; clean reports whether the
// end is complete. done is not called for a dropped answer.
func (w *Readers) Read(r dialect.Reader, m Meta, done func(a dialect.Answer, clean bool)) *Tee {
	if !decodes(m.Encoding) {
		return nil
	}
	if m.Encoding == "identity" {
		m.Encoding = ""
	}
	t := &Tee{w: w, reader: r, meta: m, done: done, reported: make(chan struct{}), share: w.budget.Share()}
	t.sse.Emit = r.Event
	w.open.begin(t)
	t.settle = sync.OnceFunc(func() { w.open.end(t); close(t.reported) })
	return t
}

// Tee parses a copy of the body of one answer. One goroutine uses it until Close. It never
// blocks or fails; a nil Tee discards everything.
type Tee struct {
	w        *Readers
	reader   dialect.Reader
	meta     Meta
	form     form
	sse      dialect.EventReader
	held     []byte
	share    budget.Share // of held, and of the incomplete event
	ended    atomic.Bool  // dropped, or closed
	done     func(dialect.Answer, bool)
	reported chan struct{} // closed by settle
	settle   func()        // ends the wait for the answer; later calls have no effect
}

// Write parses a piece of a stream, and copies one of any other body.
func (t *Tee) Write(p []byte) {
	if t == nil || t.ended.Load() {
		return
	}
	defer t.contain()
	if t.meta.Encoding == "" && t.form == formUnknown {
		t.form, p = formOf(p)
	}
	switch {
	case t.form == formEvents:
		t.sse.Feed(p)
	case len(t.held)+len(p) > maxHeld:
		t.lose()
		return
	default:
		t.held = append(t.held, p...)
	}
	if !t.share.Resize(t.share.Held(), cap(t.held)+t.sse.Size()) {
		t.lose()
	}
}

// contain drops the answer after a panic of its reader.
func (t *Tee) contain() {
	if r := recover(); r != nil {
		t.w.log.Error("reading an answer panicked", "error", fmt.Sprint(r))
		t.lose()
	}
}

// lose drops the answer.
func (t *Tee) lose() {
	t.ended.Store(true)
	t.held, t.sse = nil, dialect.EventReader{}
	t.share.Release()
	t.w.dropped.Add(1)
	t.settle()
	if t.meta.Lost != nil {
		t.meta.Lost()
	}
}

// Close ends the body and reports whether its end is complete. Further calls have no
// effect.
func (t *Tee) Close(clean bool) {
	if t == nil || t.ended.Load() {
		return
	}
	t.ended.Store(true)
	if !t.w.reports.add(t.meta.Order, func() { t.report(clean) }) {
		t.lose()
	}
}

// report parses the rest of the answer, and reports it.
func (t *Tee) report(clean bool) {
	a, ok := t.finish()
	if !ok {
		return
	}
	t.held = nil
	t.share.Release()
	defer t.settle()
	t.done(a, clean)
}

// finish parses bodies that must be read whole. ok is false if the answer was dropped.
func (t *Tee) finish() (a dialect.Answer, ok bool) {
	defer t.contain()
	switch {
	case t.meta.Encoding != "":
		if !t.decode() {
			t.lose()
			return a, false
		}
	case t.form == formEvents:
		t.sse.End()
	case t.form == formWhole:
		t.reader.Body(t.held)
	}
	return t.reader.Answer(), true
}

// decode parses a compressed answer. It returns false without memory for it.
func (t *Tee) decode() bool {
	body, err := Decode(t.meta.Encoding, t.held, Decoding{Max: maxDecoded, Share: &t.share})
	if errors.Is(err, ErrBusy) {
		return false
	}
	switch t.form, body = formOf(body); {
	case t.form == formEvents: // a truncated stream counts as far as it can be decoded
		t.sse.Feed(body)
		t.sse.End()
	case t.form == formWhole && err == nil: // else the reader makes no turn, because it has no end
		t.reader.Body(body)
	}
	return true
}
