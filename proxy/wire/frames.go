package wire

import (
	"bufio"
	"bytes"
	"fmt"
	"io"

	"github.com/gobwas/ws"

	"github.com/graphiti-proxy/graphiti-proxy/internal/budget"
)

// frames gathers a message of a WebSocket. It allocates in step with what has come,
// never by the length that a frame announces, and a share pays for it.
type frames struct {
	in    *bufio.Reader
	share budget.Share

	raw     []byte // the frames of a message that is not whole yet, as they came
	message []byte // the text in them
}

func newFrames(in io.Reader, share budget.Share) *frames {
	return &frames{in: bufio.NewReader(in), share: share}
}

// take reads a frame's payload. left is how many bytes it could not take for lack of
// RAM; what came before them stands in raw.
func (f *frames) take(h ws.Header) (left int64, err error) {
	paid := f.grow(&f.raw, ws.MaxHeaderSize) // a frame may be empty, and there may be any number of them
	f.raw = appendHeader(f.raw, h)
	if !paid {
		f.message = nil
		return h.Length, nil
	}
	at := len(f.raw)
	for left = h.Length; left > 0; {
		if _, err := f.in.Peek(1); err != nil {
			return left, fmt.Errorf("read frame: %w", err)
		}
		n := int(min(int64(f.in.Buffered()), left))
		if !f.grow(&f.raw, n) {
			return left, nil
		}
		b, _ := f.in.Peek(n) // they are there
		f.raw = append(f.raw, b...)
		_, _ = f.in.Discard(n)
		left -= int64(n)
	}
	from := len(f.message)
	if !f.grow(&f.message, len(f.raw)-at) {
		f.message = nil
		return 0, nil
	}
	f.message = append(f.message, f.raw[at:]...)
	if h.Masked {
		ws.Cipher(f.message[from:], h.Mask, 0)
	}
	return 0, nil
}

// whole reports whether the message holds all that was taken.
func (f *frames) whole(left int64) bool { return left == 0 && f.message != nil }

// grow makes room in a buffer for n bytes more, if there is enough RAM.
func (f *frames) grow(b *[]byte, n int) (ok bool) {
	if *b == nil {
		*b = []byte{}
	}
	if len(*b)+n <= cap(*b) {
		return true
	}
	*b, ok = f.share.Regrow(*b, max(2*cap(*b), len(*b)+n, 512))
	return ok
}

// drop gives back what was gathered.
func (f *frames) drop() {
	f.raw, f.message = nil, nil
	f.share.Release()
}

// pass copies n bytes as they come.
func (f *frames) pass(to io.Writer, n int64) error {
	for n > 0 {
		if _, err := f.in.Peek(1); err != nil {
			return fmt.Errorf("read frame: %w", err)
		}
		b, _ := f.in.Peek(int(min(int64(f.in.Buffered()), n))) // they are there
		if _, err := to.Write(b); err != nil {
			return fmt.Errorf("pass frame on: %w", err)
		}
		_, _ = f.in.Discard(len(b))
		n -= int64(len(b))
	}
	return nil
}

// passFrame copies a frame whose header was read.
func (f *frames) passFrame(to io.Writer, h ws.Header) error {
	if _, err := to.Write(appendHeader(nil, h)); err != nil {
		return fmt.Errorf("pass frame on: %w", err)
	}
	return f.pass(to, h.Length)
}

func appendHeader(dst []byte, h ws.Header) []byte {
	b := bytes.NewBuffer(dst)
	_ = ws.WriteHeader(b, h) // into a buffer: cannot fail
	return b.Bytes()
}
