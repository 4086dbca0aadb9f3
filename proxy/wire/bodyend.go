package wire

import "errors"

// bodyEnd follows a body to its end.
type bodyEnd struct {
	left    int64 // bytes left of a body of known length
	chunked bool
	unwrap  bool // the client does not know chunks: it gets only the payload
	open    bool // the body ends with the connection
	chunks  chunkTracker
	extra   int    // bytes behind the end: the connection cannot be used again
	plain   []byte // the payload for such a client
}

// looksWhole reports whether a client that got only a part of the body cannot see
// that it is a part.
func (b *bodyEnd) looksWhole() bool { return b.open || b.unwrap }

// done reports whether the body has come to its end.
func (b *bodyEnd) done() bool {
	if b.chunked {
		return b.chunks.done()
	}
	return !b.open && b.left == 0
}

// take consumes p, copies the payload in it to tee, and returns the bytes for the
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

// maxChunkLine bounds a chunk's size line and a trailer line.
const maxChunkLine = 16 << 10

// chunkTracker follows the chunked transfer coding (RFC 9112 section 7.1) in a
// stream of bytes that is relayed as it is: it finds the payload, for those
// who want a copy, and the end, which must be the sender's own.
type chunkTracker struct {
	state chunkState
	left  int64 // bytes of payload left in this chunk; in a size, what was read of it
	line  int   // bytes of the current size or trailer line
	digit int   // digits of a size that were read
	cr    bool  // the byte before was a carriage return
}

type chunkState uint8

const (
	chunkSize      chunkState = iota // in the digits of a size
	chunkExt                         // behind the size, before the line's end
	chunkData                        // in the payload
	chunkDataEnd                     // in the line end behind the payload
	chunkTrailer                     // at the start of a trailer line
	chunkTrailerIn                   // in a trailer line
	chunkDone
)

// feed reads p and hands the payload in it to sink, which may be nil. It
// returns how many bytes of p belong to the message, which is less than len(p)
// only at its end.
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

// step takes one byte that is not payload.
func (t *chunkTracker) step(c byte) error {
	// Both signs of a line's end, or neither: whoever takes one alone for an end
	// reads other chunks (RFC 9112 section 2.2). A NUL is refused as in a head (RFC 9110
	// section 5.5).
	if t.line++; t.line > maxChunkLine || t.cr != (c == '\n') || c == 0 {
		return errBadChunk
	}
	t.cr = c == '\r'
	switch t.state {
	case chunkSize:
		if d := hexDigit(c); d >= 0 {
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

func hexDigit(c byte) int {
	switch {
	case '0' <= c && c <= '9':
		return int(c - '0')
	case 'a' <= c && c <= 'f':
		return int(c-'a') + 10
	case 'A' <= c && c <= 'F':
		return int(c-'A') + 10
	}
	return -1
}
