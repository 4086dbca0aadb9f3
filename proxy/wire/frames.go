package wire

import (
	"bufio"
	"bytes"
	"fmt"
	"io"

	"github.com/gobwas/ws"

	"github.com/graphiti-proxy/graphiti-proxy/internal/budget"
)

// frames collects a WebSocket message. It allocates in proportion to the bytes received,
// never by a frame's announced length, and a share pays for it.
type frames struct {
	in    *bufio.Reader
	share budget.Share

	raw     []byte // unchanged frames of the incomplete message
	message []byte // their payload
}

func newFrames(in io.Reader, share budget.Share) *frames {
	return &frames{in: bufio.NewReader(in), share: share}
}

// take reads a frame, and reports whether message contains all of it. If not, for lack of
// RAM, left is the number of bytes not read; raw contains the bytes before them.
func (f *frames) take(h ws.Header) (taken bool, left int64, err error) {
	paid := f.grow(&f.raw, ws.MaxHeaderSize) // pays for the header too: any number of frames may be empty
	f.raw = appendHeader(f.raw, h)
	if !paid {
		return false, h.Length, nil
	}
	at := len(f.raw)
	for left = h.Length; left > 0; {
		if _, err := f.in.Peek(1); err != nil {
			return false, left, fmt.Errorf("read frame: %w", err)
		}
		n := int(min(int64(f.in.Buffered()), left))
		if !f.grow(&f.raw, n) {
			return false, left, nil
		}
		b, _ := f.in.Peek(n) // cannot fail: n bytes are buffered
		f.raw = append(f.raw, b...)
		_, _ = f.in.Discard(n)
		left -= int64(n)
	}
	from := len(f.message)
	if !f.grow(&f.message, len(f.raw)-at) {
		return false, 0, nil
	}
	f.message = append(f.message, f.raw[at:]...)
	if h.Masked {
		ws.Cipher(f.message[from:], h.Mask, 0)
	}
	return true, 0, nil
}

// grow makes room for n more bytes in a buffer, if the budget allows it.
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

// drop discards the message and releases its share.
func (f *frames) drop() {
	f.raw, f.message = nil, nil
	f.share.Release()
}

func appendHeader(dst []byte, h ws.Header) []byte {
	b := bytes.NewBuffer(dst)
	_ = ws.WriteHeader(b, h) // into a buffer: cannot fail
	return b.Bytes()
}
