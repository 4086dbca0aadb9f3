package wire

import (
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/gobwas/ws"

	"github.com/graphiti-proxy/graphiti-proxy/internal/budget"
)

// maxEvent bounds, in bytes, the messages of an upstream that are read; longer ones are
// passed on unread.
const maxEvent = 8 << 20

// Messages reads the messages of both sides of a WebSocket. An implementation must not
// keep the bytes. Request and Event may be called at the same time.
type Messages interface {
	// Request returns what replaces a client's message; nil: the message itself. An
	// error ends the connection, and the client gets it.
	Request(message []byte) (instead []byte, err error)

	// Event is called with an upstream's message before the client gets it: the
	// client's next message may refer to it.
	Event(message []byte)

	// End is called after the last Event.
	End()
}

// WebSocket passes frames on as they come, and hands their messages to Messages: texts
// that are not compressed, as far as there is RAM for them.
type WebSocket struct {
	Messages
	Limit func() int          // the longest request that is read
	Share func() budget.Share // pays for the gathered message

	warn   func()     // says, once, that frames cannot be read
	mu     sync.Mutex // guards refuse
	refuse error      // why the proxy ends the connection; nil: it does not
}

// fromClient passes the client's frames on, with what replaces their messages.
func (s *WebSocket) fromClient(up net.Conn, client io.Reader) error {
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
			if !h.OpCode.IsControl() {
				through = !h.Fin
			}
			if err := s.passUnread(up, f, h); err != nil {
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

// passUnread passes on a frame that is not read, behind what was gathered of its message.
func (s *WebSocket) passUnread(to io.Writer, f *frames, h ws.Header) error {
	if h.Rsv != 0 {
		s.warn()
	}
	if !h.OpCode.IsControl() {
		if len(f.raw) > 0 {
			if _, err := to.Write(f.raw); err != nil {
				return fmt.Errorf("pass frame on: %w", err)
			}
		}
		f.drop()
	}
	return f.passFrame(to, h)
}

// passMessage passes on what was gathered of a client's message or, when that is all of
// it, what replaces it.
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
			if !h.OpCode.IsControl() {
				through = !h.Fin
			}
			if err := s.passUnread(client, f, h); err != nil {
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

// end ends the connection because of a message of the client. fromUpstream tells the
// client, which gets time to read it.
func (s *WebSocket) end(err error, up net.Conn, client io.Reader) error {
	s.mu.Lock()
	s.refuse = err
	s.mu.Unlock()
	up.Close()
	_, _ = io.Copy(io.Discard, client)
	return err
}

// sayWhy tells the client why the proxy ends the connection, if it does. It is called
// between two frames.
func (s *WebSocket) sayWhy(client io.Writer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuse != nil {
		_ = ws.WriteFrame(client, ws.NewCloseFrame(ws.NewCloseFrameBody(ws.StatusPolicyViolation, s.refuse.Error())))
	}
}
