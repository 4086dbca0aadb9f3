package wire

import (
	"context"
	"io"
	"net"
	"time"
)

const (
	// maxHeard bounds the clients that are heard at a time before they are
	// refused. Others are answered at once.
	maxHeard = 16

	// hearingTime bounds how long one of them is heard, answer included.
	hearingTime = time.Second

	// maxIgnored bounds the bytes of a request that are read after its answer.
	maxIgnored = 256 << 10

	// refusalTime bounds the writing of an answer that nothing was written
	// before, so that it need not wait.
	refusalTime = 100 * time.Millisecond
)

// refuse ends a connection that is not served. Over TLS nothing can be said
// without a handshake, which takes the client's time.
func (l *Listener) refuse(raw net.Conn, answer []byte) {
	if l.o.TLS != nil {
		_ = raw.Close()
		return
	}
	select {
	case l.refusal <- struct{}{}:
		go func() {
			defer func() { <-l.refusal }()
			hearAndRefuse(l.open, raw, answer)
		}()
	default:
		_ = raw.SetWriteDeadline(time.Now().Add(refusalTime))
		_, _ = raw.Write(answer)
		_ = raw.Close()
	}
}

// hearAndRefuse answers when the client has said something: clients take an
// answer that comes before their request for a broken connection (Go's does).
// It reads what else the client says, since closing a connection with unread
// bytes resets it, and the client may lose the answer.
func hearAndRefuse(open context.Context, raw net.Conn, answer []byte) {
	defer raw.Close()
	_ = raw.SetDeadline(time.Now().Add(hearingTime))
	defer context.AfterFunc(open, func() { _ = raw.Close() })()
	_, _ = raw.Read(make([]byte, 512)) // a silent client is told, too
	_ = raw.SetWriteDeadline(time.Now().Add(hearingTime))
	if _, err := raw.Write(answer); err != nil {
		return
	}
	if half, ok := raw.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		_, _ = io.CopyN(io.Discard, raw, maxIgnored)
	}
}
