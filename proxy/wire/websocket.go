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
	return s.relay(up, f, s.Limit, func(message []byte) (net.Buffers, error) {
		instead, err := s.Request(message)
		if err != nil {
			s.end(err, up, f.in)
		}
		if err != nil || instead == nil {
			return nil, err
		}
		mask := ws.NewMask()
		ws.Cipher(instead, mask, 0)
		return net.Buffers{appendHeader(nil, ws.Header{Fin: true, OpCode: ws.OpText, Masked: true, Mask: mask, Length: int64(len(instead))}), instead}, nil
	})
}

// FromUpstream relays the upstream's frames unchanged and reads their messages. If the proxy
// ends the connection, the client gets the reason.
func (s *WebSocket) FromUpstream(client io.Writer, up io.Reader) error {
	defer s.End()
	err := s.relay(client, newFrames(up, s.Share()), func() int { return maxEvent }, func(message []byte) (net.Buffers, error) {
		s.Event(message)
		return nil, nil
	})
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.refuse != nil {
		_ = ws.WriteFrame(client, ws.NewCloseFrame(ws.NewCloseFrameBody(ws.StatusPolicyViolation, s.refuse.Error())))
	}
	return err
}

// relay relays one side's frames. It holds those of a message until its last one, and then
// passes the message to read, which returns a replacement or nil. Frames that it does not read
// pass as they arrive.
func (s *WebSocket) relay(to io.Writer, f *frames, limit func() int, read func(message []byte) (net.Buffers, error)) error {
	defer f.drop()
	through := false // the current message is not read
	for {
		h, err := ws.ReadHeader(f.in)
		if err != nil {
			return fmt.Errorf("read frame: %w", err)
		}
		if h.Rsv != 0 {
			s.warn()
		}
		most := int64(limit())
		tooLong := h.Length > most-int64(len(f.message)) || int64(len(f.raw)) > 2*most // raw is limited too, because frames may be empty
		isControl := h.OpCode.IsControl()                                              // perhaps between the frames of a message
		var out net.Buffers
		taken, left := false, h.Length
		switch {
		case isControl:
			out = net.Buffers{appendHeader(nil, h)}
		case through || h.OpCode == ws.OpBinary || h.Rsv != 0 || tooLong:
			f.raw = appendHeader(f.raw, h)
		default:
			if taken, left, err = f.take(h); err != nil {
				return err
			}
		}
		if taken && !h.Fin {
			continue
		}
		if taken {
			if out, err = read(f.message); err != nil {
				return err
			}
		}
		if out == nil {
			out = net.Buffers{f.raw}
		}
		if _, err := out.WriteTo(to); err != nil {
			return fmt.Errorf("pass frame on: %w", err)
		}
		if !isControl {
			f.drop()
			through = !h.Fin
		}
		if _, err := io.CopyN(to, f.in, left); err != nil {
			return fmt.Errorf("pass frame on: %w", err)
		}
	}
}

// end ends the connection because of a client's message. FromUpstream sends the reason,
// and the client gets time to read it.
func (s *WebSocket) end(err error, up net.Conn, client io.Reader) {
	s.mu.Lock()
	s.refuse = err
	s.mu.Unlock()
	up.Close()
	_, _ = io.Copy(io.Discard, client)
}
