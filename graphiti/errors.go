package graphiti

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// ErrTooLarge says that an answer is larger than will be read.
var ErrTooLarge = errors.New("the answer is too large")

// StatusError is an answer of the memory service that is no success.
type StatusError struct {
	Code       int
	RetryAfter time.Duration // zero when the server did not say
	Detail     string        // the server's own words, bounded; they may quote the request
}

// Error names the status only: the detail may hold what was sent.
func (e *StatusError) Error() string {
	return fmt.Sprintf("the memory service answered %d %s", e.Code, http.StatusText(e.Code))
}

// Retryable reports whether the same call may succeed later. What the server
// refuses for its content will be refused again.
func Retryable(err error) bool {
	var s *StatusError
	if !errors.As(err, &s) {
		return true
	}
	switch s.Code {
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests,
		http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound: // a wrong setting, which can be mended
		return true
	}
	return s.Code >= 500 || s.Code < 400
}

// Unsent reports whether a call that failed surely had no effect: nobody was
// reached, or the answer says that nothing was done. After any other failure
// the effect may be there.
func Unsent(err error) bool {
	var s *StatusError
	if errors.As(err, &s) {
		return s.Code < 500 || s.Code == http.StatusServiceUnavailable
	}
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}
