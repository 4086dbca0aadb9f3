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

// ofLength returns the end of a body of n bytes.
func ofLength(n int64) bodyEnd { return bodyEnd{left: n} }

// inChunks returns the end of a chunked body; unwrap: the client does not know chunks.
func inChunks(unwrap bool) bodyEnd { return bodyEnd{chunked: true, unwrap: unwrap} }

// untilClose returns the end of a body that ends with the connection.
func untilClose() bodyEnd { return bodyEnd{open: true} }

// ends reports whether the body says itself where it ends.
func (b *bodyEnd) ends() bool { return !b.open }

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

// clean reports whether nothing came behind the end.
func (b *bodyEnd) clean() bool { return b.extra == 0 }

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
