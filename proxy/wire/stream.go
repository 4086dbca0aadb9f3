package wire

import (
	"errors"
	"io"
	"sync"
	"time"
)

const (
	// firstRead is the size of the first buffer, in bytes: it grows for answers that
	// fill it, and stays small for streams of small chunks.
	firstRead = 4 << 10
	maxRead   = 64 << 10
)

// wideBuffers holds buffers of maxRead bytes, for answers that fill the first one.
var wideBuffers = sync.Pool{New: func() any { b := make([]byte, maxRead); return &b }}

// ErrGone says that the client left: there is nobody to answer.
var ErrGone = errors.New("client left")

// errBug says that a bug ended the stream: nobody knows what was answered.
var errBug = errors.New("a bug ended the stream")

// Tee gets a copy of an answer's body. It must not block, nor keep the bytes.
type Tee interface {
	Write(p []byte)
	Close(whole bool) // called at least once; only the first call counts
}

// Relayed is the result of relaying an answer.
type Relayed struct {
	First time.Time // when the client had the first of the body; zero: never
	Err   error     // ErrGone when the client did not take it
}

// stream is an answer on its way from an upstream to a client. It has one owner at a
// time: the exchange, and when that has ended an event loop or a goroutine. Others may
// only call cut.
type stream struct {
	*link
	w       *Wire
	up      *upstreamConn // after a loop, with a new connection of the same socket
	client  *clientConn
	body    bodyEnd
	tee     Tee           // nil: nobody wants a copy
	idle    time.Duration // longest silence of the upstream
	first   time.Time     // when the client had the first of the body; zero: never
	keep    bool          // the upstream's connection can be used again after the body
	closing bool          // the client's connection ends with the answer

	on *onLoop // nil: no loop relays it
}

// begin sends a head, and the bytes of the body that came with it.
func (s *stream) begin(head, came []byte) error {
	out, err := s.body.take(came, s.tee)
	if s.client.send(append(head, out...)) != nil {
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

// relay relays the rest of the body in its caller's goroutine, and reports whether the
// whole body went through. ErrGone says that the client did not take it. It reads into
// in, and may replace it by a wider buffer.
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

// cut ends the stream from outside; the goroutine or loop that relays it notices.
func (s *stream) cut() {
	if s.on != nil {
		s.on.cut(s)
		return
	}
	_ = rawConn(s.up.Conn).Close() // without a word, which could take time
}

// end ends the upstream's part, and reports whether the client's connection may
// have another request.
func (s *stream) end(whole bool, err error) (_ Relayed, open bool) {
	if s.tee != nil {
		s.tee.Close(whole)
	}
	there := s.detach()
	if err != nil && !there { // we closed it, because the client left
		err = ErrGone
	}
	if whole && there && s.keep && !s.body.open && s.body.extra == 0 {
		s.up.of.give(s.up)
	} else {
		s.up.Close()
	}
	if !whole && s.body.looksWhole() || errors.Is(err, errBug) {
		// Only a reset tells such a client that the answer is cut.
		s.client.reset()
	}
	return Relayed{First: s.first, Err: err}, !s.closing && err == nil
}

// Stream is Relay for a stream of events: the stream goes on after the request's
// handler has returned, and then holds nothing of the exchange. ended is called once,
// when it has ended, in any goroutine.
func (x *Exchange) Stream(a Answer, head Rewrite, tee Tee, ended func(Relayed)) {
	if x.pump != nil {
		ended(x.Relay(a, head, tee)) // the request is still being sent
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
	x.link = nil // the stream has it now
}

// goOn relays the rest, once the server has released the client's connection.
func (s *stream) goOn(ended func(Relayed)) {
	end := func(whole bool, err error) {
		if s.giveBack(whole, err, ended) {
			s.w.o.Serve(s.client)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.gone {
		// Ends when ended, and the next requests of the client, have ended.
		go end(false, ErrGone)
		return
	}
	s.streaming = s
	s.start(end)
}

// start relays the rest over TCP in an event loop, when the system has them, and
// otherwise in a goroutine. Then it calls end, in a goroutine of its own, with the
// results of relay.
func (s *stream) start(end func(whole bool, err error)) {
	if s.w.loops.take(s, end) {
		return
	}
	// Ends with the stream, which its deadlines and cut bound.
	go func() { end(s.relayApart()) }()
}

// narrow holds buffers of firstRead.
var narrow = sync.Pool{New: func() any { b := make([]byte, firstRead); return &b }}

// relayApart is relay without an exchange.
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

// giveBack ends the stream, and reports whether the client's connection may have
// another request; otherwise it is closed.
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
