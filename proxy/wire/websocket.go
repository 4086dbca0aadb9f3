package wire

import (
	"fmt"
	"io"
	"net"
	"sync"

	"github.com/gobwas/ws"

	"github.com/graphiti-proxy/graphiti-proxy/internal/budget"
)

// maxEvent limits the upstream messages that are read, in bytes. Longer ones are relayed
// unread.
const maxEvent = 8 << 20

// Messages reads the messages of both sides of a WebSocket. An implementation must not
// retain the bytes. Request and Event may be called concurrently.
type Messages interface {
	// Request returns a replacement for a client's message, or nil. An error ends the
	// connection and is sent to the client.
	Request(message []byte) (instead []byte, err error)

	// Event is called with an upstream's message before the client receives it,
	// because the client's next message may refer to it.
	Event(message []byte)

	// End is called after the last Event.
	End()
}

// WebSocket relays frames unchanged and passes their messages to Messages, if they are
// uncompressed texts and the budget allows it.
type WebSocket struct {
	Messages
	Limit func() int          // returns the longest request to read
	Share func() budget.Share // returns a share that pays for the collected message

	warn   func()     // logs once that frames are unreadable
	mu     sync.Mutex // guards refuse
	refuse error      // the proxy's reason for ending the connection, or nil
}

// fromClient relays the client's frames, with replaced messages.
func (s *WebSocket) fromClient(up net.Conn, client io.Reader) error {
	f := newFrames(client, s.Share())
	defer f.drop()
	through := false // the current message is not read
	for {
		h, err := ws.ReadHeader(f.in)
		if err != nil {
			return fmt.Errorf("read frame: %w", err)
		}
		limit := int64(s.Limit())
		tooLong := h.Length > limit-int64(len(f.message)) || int64(len(f.raw)) > 2*limit // raw is limited too, because frames may be empty
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

// passUnread relays an unread frame, after the frames collected of its message.
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

// passMessage relays the collected frames of a client's message, or its replacement if
// the message is complete.
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

// FromUpstream relays the upstream's frames unchanged and reads their
// messages.
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
		f.raw = nil // already sent to the client
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

// end ends the connection because of a client's message. FromUpstream sends the reason,
// and the client gets time to read it.
func (s *WebSocket) end(err error, up net.Conn, client io.Reader) error {
	s.mu.Lock()
	s.refuse = err
	s.mu.Unlock()
	up.Close()
	_, _ = io.Copy(io.Discard, client)
	return err
}

// sayWhy sends the client the proxy's reason for ending the connection, if any. It is
// called between two frames.
func (s *WebSocket) sayWhy(client io.Writer) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuse != nil {
		_ = ws.WriteFrame(client, ws.NewCloseFrame(ws.NewCloseFrameBody(ws.StatusPolicyViolation, s.refuse.Error())))
	}
}
