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

// stream is an answer on its way from an upstream to a client.
type stream struct {
	*link
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
	if !whole && s.body.looksWhole() {
		// Only a reset reveals the truncation to such a client.
		s.client.reset()
	}
	return Relayed{First: s.first, Err: err}, !s.closing && err == nil
}
