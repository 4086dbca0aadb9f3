package capture

import (
	"bufio"
	"bytes"
	"compress/flate"
	"compress/zlib"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	brrr "github.com/molecule-man/go-brrr"
)

// maxDecoded bounds what is read of one compressed answer.
const maxDecoded = 32 << 20

// Decode returns what encoded bytes say, in full; more than max bytes are an
// error. The encoding is one of HTTP's, in lower case.
func Decode(encoding string, b []byte, max int) ([]byte, error) {
	r, err := decode(encoding, bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	plain, err := io.ReadAll(io.LimitReader(r, int64(max)+1))
	if err != nil {
		return nil, fmt.Errorf("decode %s: %w", encoding, err)
	}
	if len(plain) > max {
		return nil, fmt.Errorf("decode %s: more than %d bytes", encoding, max)
	}
	return plain, nil
}

// decodes reports whether an encoding can be read. The empty one and identity
// need no decoding.
func decodes(encoding string) bool {
	switch encoding {
	case "", "identity", "gzip", "x-gzip", "deflate", "br", "zstd":
		return true
	}
	return false
}

// decode returns what an encoded answer says, as far as it can be read.
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
		out, err = zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(maxDecoded))
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

// copyTo feeds all that r yields to feed.
func copyTo(r io.Reader, feed func([]byte)) (int64, error) {
	return io.Copy(feedWriter(feed), r)
}

type feedWriter func([]byte)

func (f feedWriter) Write(p []byte) (int, error) {
	f(p)
	return len(p), nil
}
