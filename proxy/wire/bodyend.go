package wire

import (
	"errors"
	"strings"
)

// bodyEnd tracks a body up to its end.
type bodyEnd struct {
	left    int64 // remaining bytes of a body with a Content-Length
	chunked bool
	unwrap  bool // removes the chunk framing, for an HTTP/1.0 client
	open    bool // the body ends with the connection
	chunks  chunkTracker
	extra   int    // bytes after the end, which make the connection unusable
	plain   []byte // unwrapped payload
}

// looksWhole reports whether a truncated body looks complete to the client.
func (b *bodyEnd) looksWhole() bool { return b.open || b.unwrap }

// done reports whether the body has ended.
func (b *bodyEnd) done() bool {
	if b.chunked {
		return b.chunks.done()
	}
	return !b.open && b.left == 0
}

// take consumes p, copies its payload to tee, and returns the bytes to send to the
// client.
func (b *bodyEnd) take(p []byte, tee Tee) ([]byte, error) {
	switch {
	case b.chunked:
		return b.takeChunks(p, tee)
	case b.open:
		copyTo(tee, p)
		return p, nil
	}
	n := int(min(b.left, int64(len(p))))
	b.left -= int64(n)
	b.extra += len(p) - n
	copyTo(tee, p[:n])
	return p[:n], nil
}

func copyTo(tee Tee, p []byte) {
	if tee != nil {
		tee.Write(p)
	}
}

func (b *bodyEnd) takeChunks(p []byte, tee Tee) ([]byte, error) {
	b.plain = b.plain[:0]
	n, err := b.chunks.feed(p, func(piece []byte) {
		if b.unwrap {
			b.plain = append(b.plain, piece...)
		}
		copyTo(tee, piece)
	})
	b.extra += len(p) - n
	if b.unwrap {
		return b.plain, err
	}
	return p[:n], err
}

var errBadChunk = errors.New("answer has a malformed chunk")

// maxChunkLine limits a chunk's size line and a trailer line, in bytes.
const maxChunkLine = 16 << 10

// chunkTracker parses the chunked transfer coding (RFC 9112 section 7.1) of a stream
// that is relayed unchanged. It finds the payload, for copies, and the end of the
// body.
type chunkTracker struct {
	state chunkState
	left  int64 // payload bytes left in this chunk; while in a size, the value so far
	line  int   // length of the current size or trailer line
	digit int   // digits of the current size
	cr    bool  // the previous byte was a carriage return
}

type chunkState uint8

const (
	chunkSize      chunkState = iota // in the digits of a size
	chunkExt                         // after the size, before the end of its line
	chunkData                        // in the payload
	chunkDataEnd                     // in the line end after the payload
	chunkTrailer                     // at the start of a trailer line
	chunkTrailerIn                   // in a trailer line
	chunkDone
)

// feed parses p and passes its payload to sink, which may be nil. It returns how many
// bytes of p are part of the body: fewer than len(p) only at the body's end.
func (t *chunkTracker) feed(p []byte, sink func([]byte)) (int, error) {
	i := 0
	for i < len(p) && t.state != chunkDone {
		if t.state == chunkData {
			n := int(min(t.left, int64(len(p)-i)))
			if sink != nil {
				sink(p[i : i+n])
			}
			i += n
			if t.left -= int64(n); t.left == 0 {
				t.state = chunkDataEnd
			}
			continue
		}
		if err := t.step(p[i]); err != nil {
			return i, err
		}
		i++
	}
	return i, nil
}

func (t *chunkTracker) done() bool { return t.state == chunkDone }

// step consumes one byte of framing.
func (t *chunkTracker) step(c byte) error {
	// Require CR and LF together: a parser that accepts one alone as a line end sees
	// other chunks (RFC 9112 section 2.2). Reject NUL, as in a head (RFC 9110 section
	// 5.5).
	if t.line++; t.line > maxChunkLine || t.cr != (c == '\n') || c == 0 {
		return errBadChunk
	}
	t.cr = c == '\r'
	switch t.state {
	case chunkSize:
		if d := strings.IndexByte("0123456789abcdefABCDEF", c); d >= 0 {
			if d >= 16 {
				d -= 6
			}
			if t.digit++; t.digit > 15 {
				return errBadChunk
			}
			t.left = t.left<<4 | int64(d)
			return nil
		}
		if t.digit == 0 || c != '\r' && c != ';' && c != ' ' && c != '\t' {
			return errBadChunk
		}
		t.state = chunkExt
	case chunkExt:
		if c == '\n' {
			t.digit, t.line = 0, 0
			if t.state = chunkData; t.left == 0 {
				t.state = chunkTrailer
			}
		}
	case chunkDataEnd:
		switch c {
		case '\r':
		case '\n':
			t.state, t.line = chunkSize, 0
		default:
			return errBadChunk
		}
	case chunkTrailer:
		switch c {
		case '\r':
		case '\n':
			t.state = chunkDone
		default:
			t.state = chunkTrailerIn
		}
	case chunkTrailerIn:
		if c == '\n' {
			t.state, t.line = chunkTrailer, 0
		}
	}
	return nil
}
