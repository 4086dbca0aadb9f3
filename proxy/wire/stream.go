package wire

import (
	"errors"
	"io"
	"net"
	"sync"
	"time"
)

const (
	// FirstRead is what is asked of a connection at once; the buffer grows
	// for answers that fill it and stays small for streams of small chunks.
	FirstRead = 4 << 10
	MaxRead   = 64 << 10
)

// wideBuffers holds buffers of MaxRead for answers that fill the first one.
var wideBuffers = sync.Pool{New: func() any { b := make([]byte, MaxRead); return &b }}

// ErrGone says that the client left: there is nobody to answer.
var ErrGone = errors.New("client left")

// ErrBug says that a bug has shown: nobody can say what was answered.
var ErrBug = errors.New("a bug ended the stream")

// Tee gets a copy of an answer's body. It must not block, nor keep the bytes.
type Tee interface {
	Write(p []byte)
	Close(whole bool) // is called at least once; the first call counts
}

// Stream is the body of an answer on its way from an upstream to a client. It
// has one owner at a time; only Cut may be called by others.
type Stream struct {
	Up     net.Conn // another one, of the same socket, after a loop
	Client *ClientConn
	Body   bodyEnd
	Tee    Tee           // nil: nobody wants a copy
	Idle   time.Duration // longest silence of the upstream
	First  time.Time     // when the first of the body was with the client; zero: none was

	Lost bool // Up is closed, though the body came to its end

	on *onLoop // nil: a goroutine relays it
}

// Begin sends a head, and the bytes of the body that came with it.
func (s *Stream) Begin(head, came []byte) error {
	out, err := s.Body.Take(came, s.Tee)
	if s.Client.Send(append(head, out...)) != nil {
		return ErrGone
	}
	s.sent(len(out))
	return err
}

func (s *Stream) sent(n int) {
	if n > 0 && s.First.IsZero() {
		s.First = time.Now()
	}
}

// Relay relays the rest of the body in the goroutine that calls it. It reports
// whether the whole body went through. ErrGone says that the client did not take
// it. in is what it reads into, which it may replace by a wider one.
func (s *Stream) Relay(in *[]byte) (whole bool, err error) {
	var deadline time.Time
	for err == nil && !s.Body.Done() {
		if by, renewed := Extend(deadline, s.Idle); renewed {
			deadline = by
			if err := s.Up.SetReadDeadline(by); err != nil {
				return false, err
			}
		}
		n, readErr := s.Up.Read(*in)
		if n > 0 {
			var out []byte
			out, err = s.Body.Take((*in)[:n], s.Tee)
			if s.Client.Send(out) != nil {
				return false, ErrGone
			}
			s.sent(len(out))
			if n == len(*in) && n < MaxRead {
				*in = *wideBuffers.Get().(*[]byte) //nolint:forcetypeassert // the pool's only type
			}
		}
		if readErr != nil && !s.Body.Done() {
			if errors.Is(readErr, io.EOF) && !s.Body.Ends() {
				return true, nil
			}
			return false, readErr
		}
	}
	return err == nil, err
}

// Cut ends the stream from outside. Who relays it finds out.
func (s *Stream) Cut() {
	if s.on != nil {
		s.on.cut(s)
		return
	}
	_ = rawConn(s.Up).Close() // without a word, which could take time
}
