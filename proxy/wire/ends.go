package wire

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
