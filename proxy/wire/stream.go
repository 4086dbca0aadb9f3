package wire

import (
	"errors"
	"io"
	"sync"
	"time"
)

const (
	// firstRead is the size of the first buffer, in bytes. Answers that fill it get a
	// buffer of maxRead; streams of small chunks stay with a small one.
	firstRead = 4 << 10
	maxRead   = 64 << 10
)

// wideBuffers pools buffers of maxRead bytes.
var wideBuffers = sync.Pool{New: func() any { b := make([]byte, maxRead); return &b }}

// ErrGone reports that the client disconnected.
var ErrGone = errors.New("client left")

// errBug reports that a panic ended the stream. The answer may be incomplete.
var errBug = errors.New("a bug ended the stream")

// Tee receives a copy of an answer's body. It must not block or retain the bytes.
type Tee interface {
	Write(p []byte)
	Close(whole bool) // called at least once; only the first call counts
}

// Relayed is the result of relaying an answer.
type Relayed struct {
	First time.Time // when the first body byte was sent to the client, or zero
	Err   error     // ErrGone if the client did not accept the answer
}

// stream is an answer on its way from an upstream to a client. It has one owner at a
// time: the exchange, then a goroutine. Others may only call cut.
type stream struct {
	*link
	w       *Wire
	up      *upstreamConn
	client  *clientConn
	body    bodyEnd
	tee     Tee           // nil if no copy is needed
	idle    time.Duration // longest silence of the upstream
	first   time.Time     // when the first body byte was sent to the client, or zero
	keep    bool          // the upstream's connection is reusable after the body
	closing bool          // the client's connection ends with the answer
}

// begin sends a head and the bytes of the body that arrived with it. It appends them to the
// head, so that the exchange keeps the larger buffer.
func (s *stream) begin(head *[]byte, came []byte) error {
	out, err := s.body.take(came, s.tee)
	if *head = append(*head, out...); s.client.send(*head) != nil {
		return ErrGone
	}
	s.sent(len(out))
	return err
}

func (s *stream) sent(n int) {
	if n > 0 && s.first.IsZero() {
		s.first = time.Now()
	}
}

// relay relays the rest of the body in the calling goroutine, and reports whether it
// relayed the entire body. It returns ErrGone if the client did not accept it. It reads
// into in, and may replace it by a wider buffer.
func (s *stream) relay(in *[]byte) (whole bool, err error) {
	for err == nil && !s.body.done() {
		if err := renew(&s.up.readBy, s.idle, s.up.SetReadDeadline); err != nil {
			return false, err
		}
		n, readErr := s.up.Read(*in)
		if n > 0 {
			var out []byte
			out, err = s.body.take((*in)[:n], s.tee)
			if s.client.send(out) != nil {
				return false, ErrGone
			}
			s.sent(len(out))
			if n == len(*in) && n < maxRead {
				*in = *wideBuffers.Get().(*[]byte) //nolint:forcetypeassert // the pool's only type
			}
		}
		if readErr != nil && !s.body.done() {
			if errors.Is(readErr, io.EOF) && s.body.open {
				return true, nil
			}
			return false, readErr
		}
	}
	return err == nil, err
}

// cut interrupts the stream; its owner notices and ends it.
func (s *stream) cut() {
	_ = rawConn(s.up.Conn).Close() // without TLS's closing alert, which could block
}

// end releases the upstream's connection, and reports whether the client's connection
// is reusable.
func (s *stream) end(whole bool, err error) (_ Relayed, open bool) {
	if s.tee != nil {
		s.tee.Close(whole)
	}
	there := s.detach()
	if err != nil && !there { // abandon closed it, because the client disconnected
		err = ErrGone
	}
	if whole && there && s.keep && !s.body.open && s.body.extra == 0 {
		s.up.of.give(s.up)
	} else {
		s.up.Close()
	}
	if !whole && s.body.looksWhole() || errors.Is(err, errBug) {
		// Only a reset reveals the truncation to such a client.
		s.client.reset()
	}
	return Relayed{First: s.first, Err: err}, !s.closing && err == nil
}

// Stream is Relay for a stream of events, which outlives the request's handler and its
// exchange. It calls ended once, in any goroutine.
func (x *Exchange) Stream(a Answer, head Rewrite, tee Tee, ended func(Relayed)) {
	if x.pump != nil {
		ended(x.Relay(a, head, tee)) // the pump still needs the exchange
		return
	}
	s, began := new(stream), false
	defer func() {
		if began {
			return
		}
		if tee != nil {
			tee.Close(false)
		}
		ended(Relayed{Err: errBug})
	}()
	whole, err := x.begin(s, &a, head, tee)
	if began = true; whole || err != nil {
		ended(x.end(s, whole, err))
		return
	}
	x.w.streams.add()
	x.client.take(x.ctx, func() { s.goOn(ended) })
	x.link = nil // owned by the stream now
}

// goOn relays the rest after the server has released the client's connection.
func (s *stream) goOn(ended func(Relayed)) {
	end := func(whole bool, err error) {
		if s.giveBack(whole, err, ended) {
			s.w.o.Serve(s.client)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		// Ends with ended and the client's next requests.
		go end(false, ErrGone)
		return
	}
	s.streaming = s
	s.start(end)
}

// start relays the rest in a goroutine, and then calls end with the results of relay.
func (s *stream) start(end func(whole bool, err error)) {
	// Ends with the stream, which its deadlines and cut limit.
	go func() { end(s.relayApart()) }()
}

// narrow pools buffers of firstRead bytes.
var narrow = sync.Pool{New: func() any { b := make([]byte, firstRead); return &b }}

// relayApart calls relay with a pooled buffer and recovers from panics.
func (s *stream) relayApart() (whole bool, err error) {
	defer CatchPanic(s.w.o.Log, "relay of a stream", func() { whole, err = false, errBug })
	in := narrow.Get().(*[]byte) //nolint:forcetypeassert // the pool's only type
	whole, err = s.relay(in)
	if len(*in) == firstRead {
		narrow.Put(in)
	} else {
		wideBuffers.Put(in)
	}
	return whole, err
}

// giveBack ends the stream, and reports whether the client's connection is reusable. If
// not, it closes the connection.
func (s *stream) giveBack(whole bool, err error, ended func(Relayed)) (open bool) {
	defer s.w.streams.remove()
	defer func() {
		if !open {
			_ = s.client.Close()
		}
	}()
	defer CatchPanic(s.w.o.Log, "end of a stream", func() { open = false })
	s.w.hangups.forget(s.link)
	relayed, open := s.end(whole, err)
	ended(relayed)
	s.client.rest()
	return open && !s.w.draining.Load()
}
