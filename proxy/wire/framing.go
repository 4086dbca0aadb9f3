package wire

// framing follows a body to its end.
type framing struct {
	left    int64 // bytes left of a body of known length
	chunked bool
	unwrap  bool // the client does not know chunks
	open    bool // the body ends with the connection
	chunks  chunkTracker
	extra   int    // bytes behind the end: the connection is spoilt
	plain   []byte // payload for a client that does not know chunks
}

func framingOf(h *AnswerHead, headRequest, http11 bool) framing {
	switch {
	case h.bodiless(headRequest):
		return framing{}
	case h.chunked:
		return framing{chunked: true, unwrap: !http11}
	case h.length >= 0:
		return framing{left: h.length}
	}
	return framing{open: true}
}

// ends reports whether the body says itself where it ends.
func (f *framing) ends() bool { return !f.open }

func (f *framing) done() bool {
	if f.chunked {
		return f.chunks.done()
	}
	return !f.open && f.left == 0
}

// take consumes p, copies the payload in it to tee, and returns what the
// client gets of it.
func (f *framing) take(p []byte, tee Tee) ([]byte, error) {
	switch {
	case f.chunked:
		return f.takeChunks(p, tee)
	case f.open:
		copyTo(tee, p)
		return p, nil
	}
	n := int(min(f.left, int64(len(p))))
	f.left -= int64(n)
	f.extra += len(p) - n
	copyTo(tee, p[:n])
	return p[:n], nil
}

func copyTo(tee Tee, p []byte) {
	if tee != nil {
		tee.Write(p)
	}
}

func (f *framing) takeChunks(p []byte, tee Tee) ([]byte, error) {
	f.plain = f.plain[:0]
	var n int
	var err error
	switch {
	case f.unwrap:
		n, err = f.chunks.feed(p, func(b []byte) {
			f.plain = append(f.plain, b...)
			copyTo(tee, b)
		})
	case tee != nil:
		n, err = f.chunks.feed(p, tee.Write)
	default:
		n, err = f.chunks.feed(p, nil)
	}
	f.extra += len(p) - n
	if f.unwrap {
		return f.plain, err
	}
	return p[:n], err
}
