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
	// maxDecoded is the size limit of a decompressed answer.
	maxDecoded = 32 << 20

	// freely is how many bytes may be decoded regardless of the ratio.
	freely = 1 << 20

	// maxWindow is the largest accepted decoder window, the limit of RFC 9659 for zstd on
	// the web.
	maxWindow = 8 << 20

	// firstDecoded is the initial size of the result buffer.
	firstDecoded = 64 << 10
)

// Errors of Decode for valid bytes.
var (
	ErrTooLarge = errors.New("decoded, it is too large")
	ErrBusy     = errors.New("there is no RAM for it now")
	ErrLate     = errors.New("decoding it took too long")
)

// Decoding limits a call of Decode.
type Decoding struct {
	Max   int           // bytes
	Ratio int           // most decoded bytes per encoded byte, or 0 for no limit
	Share *budget.Share // accounts for the allocations
	Until time.Time     // deadline, or zero for none
}

// Decode decodes all bytes. The encoding is an HTTP content coding in lower case. The share
// accounts for the result and the decoder as they grow. Decode releases the decoder's part
// at the end. After an error of the decoder, the result is the beginning; after another, it is nil.
func Decode(encoding string, b []byte, bounds Decoding) (plain []byte, err error) {
	window := windowOf(encoding, b)
	if !bounds.Share.Grow(window) {
		return nil, ErrBusy
	}
	before := bounds.Share.Held() - window
	defer func() {
		if err != nil && len(plain) == 0 {
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
			return plain, fmt.Errorf("decode %s: %w", encoding, err)
		}
	}
}

// windowOf returns the approximate memory of the decoder for b.
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

// decodes reports whether an encoding is supported, including the empty one and identity.
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

// inflate reads deflate with or without a zlib header.
func inflate(r io.Reader) (io.Reader, error) {
	br := bufio.NewReader(r)
	head, err := br.Peek(2)
	if err == nil && head[0]&0x0f == 8 && (int(head[0])<<8|int(head[1]))%31 == 0 {
		return zlib.NewReader(br)
	}
	return flate.NewReader(br), nil
}
