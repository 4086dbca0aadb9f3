package wire

import (
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/gobwas/ws"

	"github.com/graphiti-proxy/graphiti-proxy/internal/budget"
)

// maxEvent bounds the messages of an upstream that are read; longer ones pass
// unread.
const maxEvent = 8 << 20

// Messages are what both sides of a WebSocket say. An implementation must not
// keep the bytes. Request and Event may be called at the same time.
type Messages interface {
	// Request returns what is sent in place of a message of the client's; nil:
	// the message itself. An error ends the connection, and the client is told.
	Request(message []byte) (instead []byte, err error)

	// Event is called with a message of the upstream's before the client has
	// it: what the client sends next may refer to it.
	Event(message []byte)

	// End is called when no event comes any more.
	End()
}

// WebSocket passes frames on as they come, and hands their messages over: text
// that is not compressed, and that there is memory for.
type WebSocket struct {
	Messages
	Limit func() int          // the longest request that is read
	Share func() budget.Share // pays for what is gathered

	warn   func() // says that frames cannot be read
	warned sync.Once
	mu     sync.Mutex // guards refuse
	refuse error      // why we end the connection; nil: we do not
}

// FromClient passes the client's frames on, with what replaces their messages.
func (s *WebSocket) FromClient(up net.Conn, client io.Reader) error {
	f := newFrames(client, s.Share())
	defer f.drop()
	through := false // the message is not read
	for {
		h, err := ws.ReadHeader(f.in)
		if err != nil {
			return fmt.Errorf("read frame: %w", err)
		}
		limit := int64(s.Limit())
		tooLong := h.Length > limit-int64(len(f.message)) || int64(len(f.raw)) > 2*limit // frames may be empty
		if h.OpCode.IsControl() || through || h.OpCode == ws.OpBinary || h.Rsv != 0 || tooLong {
			if h.Rsv != 0 {
				s.warned.Do(s.warn)
			}
			if !h.OpCode.IsControl() {
				if _, err := up.Write(f.raw); err != nil {
					return fmt.Errorf("pass frame on: %w", err)
				}
				f.drop()
				through = !h.Fin
			}
			if err := f.passFrame(up, h); err != nil {
				return err
			}
			continue
		}
		left, err := f.take(h)
		if err != nil {
			return err
		}
		if f.whole(left) && !h.Fin {
			continue
		}
		if err := s.passMessage(up, f, left); err != nil {
			return err
		}
		f.drop()
		through = !h.Fin
		if err := f.pass(up, left); err != nil {
			return err
		}
	}
}

// passMessage passes on what was gathered of a message of the client's, or what
// replaces it where all of it was.
func (s *WebSocket) passMessage(up net.Conn, f *frames, left int64) error {
	out := net.Buffers{f.raw}
	if f.whole(left) {
		instead, err := s.Request(f.message)
		if err != nil {
			return s.end(err, up, f.in)
		}
		if instead != nil {
			mask := ws.NewMask()
			ws.Cipher(instead, mask, 0)
			out = net.Buffers{appendHeader(nil, ws.Header{Fin: true, OpCode: ws.OpText, Masked: true, Mask: mask, Length: int64(len(instead))}), instead}
		}
	}
	if _, err := out.WriteTo(up); err != nil {
		return fmt.Errorf("pass frame on: %w", err)
	}
	return nil
}

// FromUpstream passes the upstream's frames on as they are, and reads the
// messages in them.
func (s *WebSocket) FromUpstream(client io.Writer, up io.Reader) error {
	defer s.End()
	f := newFrames(up, s.Share())
	defer f.drop()
	through := false
	for {
		h, err := ws.ReadHeader(f.in)
		if err != nil {
			s.sayWhy(client)
			return fmt.Errorf("read frame: %w", err)
		}
		tooLong := h.Length > maxEvent-int64(len(f.message))
		if h.OpCode.IsControl() || through || h.OpCode == ws.OpBinary || h.Rsv != 0 || h.Masked || tooLong {
			if h.Rsv != 0 {
				s.warned.Do(s.warn)
			}
			if !h.OpCode.IsControl() {
				f.drop()
				through = !h.Fin
			}
			if err := f.passFrame(client, h); err != nil {
				return err
			}
			continue
		}
		left, err := f.take(h)
		if err != nil {
			s.sayWhy(client)
			return err
		}
		whole := f.whole(left)
		if whole && h.Fin {
			s.Event(f.message)
		}
		if _, err := client.Write(f.raw); err != nil {
			return fmt.Errorf("pass frame on: %w", err)
		}
		f.share.Shrink(f.share.Held() - cap(f.raw))
		f.raw = nil // the frame is with the client
		if !whole || h.Fin {
			f.drop()
		}
		if !whole {
			through = !h.Fin
			if err := f.pass(client, left); err != nil {
				return err
			}
		}
	}
}

// end ends the connection because of something that the client asks for.
// FromUpstream tells the client, who gets the time to read it.
func (s *WebSocket) end(err error, up net.Conn, client io.Reader) error {
	s.mu.Lock()
	s.refuse = err
	s.mu.Unlock()
	up.Close()
	_, _ = io.Copy(io.Discard, client)
	return err
}

// sayWhy tells the client why the connection is ended, where it is so by us. It
// is called between two frames.
func (s *WebSocket) sayWhy(client io.Writer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuse != nil {
		_ = ws.WriteFrame(client, ws.NewCloseFrame(ws.NewCloseFrameBody(ws.StatusPolicyViolation, s.refuse.Error())))
	}
}
