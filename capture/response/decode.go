package response

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/zlib"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	brrr "github.com/molecule-man/go-brrr"

	"github.com/graphiti-proxy/graphiti-proxy/internal/budget"
)

const (
	// maxDecoded bounds what is read of one compressed answer.
	maxDecoded = 32 << 20

	// freely is how many bytes may be decoded regardless of the ratio.
	freely = 1 << 20

	// maxWindow is the largest window of a decoder: RFC 9659 asks for no more
	// of zstd on the web. A frame that claims a larger one is refused.
	maxWindow = 8 << 20

	// firstDecoded is what is allocated before anything is decoded.
	firstDecoded = 64 << 10
)

// The errors with which Decode gives up on valid bytes.
var (
	ErrTooLarge = errors.New("decoded, it is too large")
	ErrBusy     = errors.New("there is no RAM for it now")
	ErrLate     = errors.New("decoding it took too long")
)

// Decoding is what one decoding may take.
type Decoding struct {
	Max   int           // bytes
	Ratio int           // most bytes that one encoded byte may stand for; 0: no bound
	Share *budget.Share // pays for what is allocated
	Until time.Time     // zero: no time limit
}

// Decode decodes bytes completely. The encoding is one of HTTP's, in lower case. The
// share pays for the result and the decoder as they grow; the decoder's part is given
// back at the end, and all of it after an error.
func Decode(encoding string, b []byte, bounds Decoding) (plain []byte, err error) {
	window := windowOf(encoding, b)
	if !bounds.Share.Grow(window) {
		return nil, ErrBusy
	}
	before := bounds.Share.Held() - window
	defer func() {
		if err != nil {
			plain = nil
			bounds.Share.Shrink(before)
			return
		}
		bounds.Share.Shrink(bounds.Share.Held() - window)
	}()
	r, err := decode(encoding, bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	most := bounds.Max
	if bounds.Ratio > 0 {
		most = min(most, max(freely, bounds.Ratio*len(b)))
	}
	for {
		if len(plain) == cap(plain) {
			size := min(max(firstDecoded, 2*cap(plain)), most+1)
			if size <= len(plain) {
				return nil, ErrTooLarge
			}
			var ok bool
			if plain, ok = bounds.Share.Regrow(plain, size); !ok {
				return nil, ErrBusy
			}
		}
		if !bounds.Until.IsZero() && time.Now().After(bounds.Until) {
			return nil, ErrLate
		}
		n, err := r.Read(plain[len(plain):min(cap(plain), len(plain)+firstDecoded)])
		plain = plain[:len(plain)+n]
		switch {
		case len(plain) > most:
			return nil, ErrTooLarge
		case errors.Is(err, io.EOF):
			return plain, nil
		case err != nil:
			return nil, fmt.Errorf("decode %s: %w", encoding, err)
		}
	}
}

// windowOf returns about how many bytes the decoder of some bytes takes.
func windowOf(encoding string, b []byte) int {
	const least = 64 << 10
	switch encoding {
	case "br":
		return 16 << 20 // the largest that the format has
	case "zstd":
		var h zstd.Header
		if h.Decode(b) != nil {
			return least
		}
		window := h.WindowSize
		if h.SingleSegment {
			window = h.FrameContentSize
		}
		return least + 2*int(min(window, maxWindow)) // #nosec G115 -- bounded
	}
	return least
}

// decodes reports whether an encoding can be read. The empty one and identity
// need no decoding.
func decodes(encoding string) bool {
	return encoding == "" || encoding == "identity" || slices.Contains(encodings, encoding)
}

var encodings = []string{"gzip", "x-gzip", "deflate", "br", "zstd"}

// decode returns a reader of the decoded answer.
func decode(encoding string, r io.Reader) (io.Reader, error) {
	var out io.Reader
	var err error
	switch encoding {
	case "", "identity":
		return r, nil
	case "gzip", "x-gzip":
		out, err = gzip.NewReader(r)
	case "deflate":
		out, err = inflate(r)
	case "br":
		out = brrr.NewReader(r)
	case "zstd":
		out, err = zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
			zstd.WithDecoderMaxMemory(maxDecoded), zstd.WithDecoderMaxWindow(maxWindow))
	default:
		return nil, fmt.Errorf("unknown content encoding %q", encoding)
	}
	if err != nil {
		return nil, fmt.Errorf("decode %s: %w", encoding, err)
	}
	return io.LimitReader(out, maxDecoded), nil
}

// inflate reads deflate, which is sent with and without zlib's frame.
func inflate(r io.Reader) (io.Reader, error) {
	br := bufio.NewReader(r)
	head, err := br.Peek(2)
	if err == nil && head[0]&0x0f == 8 && (int(head[0])<<8|int(head[1]))%31 == 0 {
		return zlib.NewReader(br)
	}
	return flate.NewReader(br), nil
}

// feedWriter is a function as a writer.
type feedWriter func([]byte)

func (f feedWriter) Write(p []byte) (int, error) {
	f(p)
	return len(p), nil
}
