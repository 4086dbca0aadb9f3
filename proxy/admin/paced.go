package admin

import (
	"errors"
	"io"
	"net/http"
	"os"
	"time"
)

const (
	// slowest is the least average rate of a body, in bytes per second, after patience.
	slowest  = 16 << 10
	patience = 10 * time.Second
)

// errSlow is the error of a body that arrives too slowly.
var errSlow = errors.New("it arrives too slowly; send it faster, or in smaller parts")

// paced bounds the time for the bodies of a call. The server lifts the read deadline of a
// request without a body, or with a complete one: such a call may wait for the memory.
func paced(w http.ResponseWriter, r *http.Request) (to *pacedWriter, done func()) {
	c := http.NewResponseController(w)
	body := &pacedBody{ReadCloser: r.Body, c: c, began: time.Now()}
	if r.Body != nil && r.Body != http.NoBody {
		body.renew()
		r.Body = body
	}
	to = &pacedWriter{ResponseWriter: w, c: c}
	return to, func() { to.renew(0) } // for the rest in a buffer
}

type pacedBody struct {
	io.ReadCloser
	c     *http.ResponseController
	began time.Time
	read  int64
}

func (b *pacedBody) renew() {
	_ = b.c.SetReadDeadline(b.began.Add(patience + timeFor(b.read)))
}

// Read implements io.Reader.
func (b *pacedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return n, errSlow
	}
	if err == nil {
		b.renew()
	}
	return n, err //nolint:wrapcheck // io.EOF is compared
}

// timeFor returns the most time for n bytes.
func timeFor(n int64) time.Duration { return time.Duration(n) * time.Second / slowest }

type pacedWriter struct {
	http.ResponseWriter
	c *http.ResponseController
}

func (w *pacedWriter) renew(n int) {
	_ = w.c.SetWriteDeadline(time.Now().Add(patience + timeFor(int64(n))))
}

// Write implements io.Writer.
func (w *pacedWriter) Write(b []byte) (int, error) {
	w.renew(len(b))
	return w.ResponseWriter.Write(b) //nolint:wrapcheck // an io.Writer's
}

// Unwrap is for http.ResponseController.
func (w *pacedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
