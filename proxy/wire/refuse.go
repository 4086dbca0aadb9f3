package wire

import (
	"context"
	"io"
	"net"
	"time"
)

const (
	// maxRefusing limits the clients whose requests are read before the refusal. Further
	// clients get the refusal immediately.
	maxRefusing = 16

	// refusingTime limits the reading and the answer, each.
	refusingTime = time.Second

	// maxIgnored limits the bytes of a request that are read after its answer.
	maxIgnored = 1 << 20

	// refusalTime limits the write of an immediate refusal. The first write on a
	// connection does not block.
	refusalTime = 100 * time.Millisecond
)

// refuse ends a refused connection. Over TLS it sends no answer, because that would need
// a handshake.
func (l *Listener) refuse(raw net.Conn, answer []byte) {
	if l.o.TLS != nil {
		_ = raw.Close()
		return
	}
	select {
	case l.refusal <- struct{}{}:
		go func() {
			defer func() { <-l.refusal }()
			readAndRefuse(l.open, raw, answer)
		}()
	default:
		_ = raw.SetWriteDeadline(time.Now().Add(refusalTime))
		_, _ = raw.Write(answer)
		_ = raw.Close()
	}
}

// answerOf returns the last answer of a connection, without a request.
func answerOf(status, why string) []byte {
	return []byte("HTTP/1.1 " + status + "\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n" + why + "\n")
}

// readAndRefuse answers after the client has sent something: clients such as Go's treat
// an answer before their request as a broken connection.
func readAndRefuse(open context.Context, raw net.Conn, answer []byte) {
	defer raw.Close()
	_ = raw.SetDeadline(time.Now().Add(refusingTime))
	defer context.AfterFunc(open, func() { _ = raw.Close() })()
	_, _ = raw.Read(make([]byte, 512)) // a silent client also gets the answer
	answerLast(raw, answer)
}

// answerLast writes the last answer on a connection and then drains it: closing a
// connection with unread bytes resets it, and the client may lose the answer.
func answerLast(c net.Conn, answer []byte) {
	_ = c.SetDeadline(time.Now().Add(refusingTime))
	if _, err := c.Write(answer); err == nil && closeWrite(c) {
		_, _ = io.CopyN(io.Discard, c, maxIgnored)
	}
}
