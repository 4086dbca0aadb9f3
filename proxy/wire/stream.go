package wire

import (
	"errors"
	"io"
	"net"
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

// stream is the body of an answer on its way from an upstream to a client. It
// has one owner at a time; others may only call cut.
type stream struct {
	Up     net.Conn // after a loop, a new connection of the same socket
	Client *clientConn
	Body   bodyEnd
	Tee    Tee           // nil: nobody wants a copy
	Idle   time.Duration // longest silence of the upstream
	First  time.Time     // when the client had the first of the body; zero: never

	Lost bool // Up is closed, although the body has ended properly

	on *onLoop // nil: a goroutine relays it
}

// begin sends a head, and the bytes of the body that came with it.
func (s *stream) begin(head, came []byte) error {
	out, err := s.Body.take(came, s.Tee)
	if s.Client.send(append(head, out...)) != nil {
		return ErrGone
	}
	s.sent(len(out))
	return err
}

func (s *stream) sent(n int) {
	if n > 0 && s.First.IsZero() {
		s.First = time.Now()
	}
}

// relay relays the rest of the body in its caller's goroutine, and reports whether the
// whole body went through. ErrGone says that the client did not take it. It reads into
// in, and may replace it by a wider buffer.
func (s *stream) relay(in *[]byte) (whole bool, err error) {
	var deadline time.Time
	for err == nil && !s.Body.done() {
		if by, renewed := extend(deadline, s.Idle); renewed {
			deadline = by
			if err := s.Up.SetReadDeadline(by); err != nil {
				return false, err
			}
		}
		n, readErr := s.Up.Read(*in)
		if n > 0 {
			var out []byte
			out, err = s.Body.take((*in)[:n], s.Tee)
			if s.Client.send(out) != nil {
				return false, ErrGone
			}
			s.sent(len(out))
			if n == len(*in) && n < maxRead {
				*in = *wideBuffers.Get().(*[]byte) //nolint:forcetypeassert // the pool's only type
			}
		}
		if readErr != nil && !s.Body.done() {
			if errors.Is(readErr, io.EOF) && !s.Body.ends() {
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
	_ = rawConn(s.Up).Close() // without a word, which could take time
}
