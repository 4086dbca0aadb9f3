package wire

import (
	"context"
	"io"
	"net"
	"time"
)

const (
	// maxRefusing bounds the clients that are read from at a time before they are
	// refused. Others get their answer at once.
	maxRefusing = 16

	// refusingTime bounds each of the reading and the answer.
	refusingTime = time.Second

	// maxIgnored bounds the bytes of a request that are read after its answer.
	maxIgnored = 1 << 20

	// refusalTime bounds the writing of an answer that is sent at once: it is the first
	// on its connection, so it need not wait.
	refusalTime = 100 * time.Millisecond
)

// refuse ends a connection that is not served. Over TLS it says nothing: that would
// take a handshake, and so the client's time.
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

// readAndRefuse answers when the client has sent something: clients such as Go's take
// an answer before their request for a broken connection.
func readAndRefuse(open context.Context, raw net.Conn, answer []byte) {
	defer raw.Close()
	_ = raw.SetDeadline(time.Now().Add(refusingTime))
	defer context.AfterFunc(open, func() { _ = raw.Close() })()
	_, _ = raw.Read(make([]byte, 512)) // a silent client gets the answer, too
	answerLast(raw, answer)
}

// answerLast writes the last answer on a connection. It then reads on: closing a
// connection with unread bytes resets it, and the client may lose the answer.
func answerLast(c net.Conn, answer []byte) {
	_ = c.SetDeadline(time.Now().Add(refusingTime))
	if _, err := c.Write(answer); err == nil && closeWrite(c) {
		_, _ = io.CopyN(io.Discard, c, maxIgnored)
	}
}
