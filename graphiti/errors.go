package graphiti

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"
)

// ErrTooLarge says that an answer is larger than we read.
var ErrTooLarge = errors.New("the answer is too large")

// PartError says that Write failed in the middle: the backend accepted the first
// Accepted messages, Err is about the next one, and the rest was not sent.
type PartError struct {
	Accepted int
	Err      error
}

// Error implements error. PartError has no Unwrap, so that nobody takes it for an
// error after which the whole call may be repeated.
func (e *PartError) Error() string {
	return fmt.Sprintf("after %d messages: %v", e.Accepted, e.Err)
}

// StatusError is an answer of the memory service that reports a failure.
type StatusError struct {
	Code       int
	RetryAfter time.Duration // zero when the server did not say
	Detail     string        // the server's own words, bounded; they may quote the request
}

// Error names the status only: the detail may quote what was sent.
func (e *StatusError) Error() string {
	return fmt.Sprintf("the memory service answered %d %s", e.Code, http.StatusText(e.Code))
}

// Retryable reports whether the same call may succeed later. A server that refuses
// a message for its content will refuse it again. Every other failure is about the
// service, its address or a proxy before it, and somebody can mend that.
func Retryable(err error) bool {
	var s *StatusError
	if !errors.As(err, &s) {
		return true
	}
	switch s.Code {
	case http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return false
	case http.StatusBadRequest:
		return !speaksOfContent(s.Detail)
	}
	return true
}

// speaksOfContent reports whether the text of an error is one of FastAPI about the
// body of the request: a proxy before the service answers 400 for other reasons.
func speaksOfContent(detail string) bool {
	var body struct {
		Detail json.RawMessage `json:"detail"`
	}
	if json.Unmarshal([]byte(detail), &body) != nil || body.Detail == nil {
		return false
	}
	var text string
	if json.Unmarshal(body.Detail, &text) == nil {
		return text != "" && text != http.StatusText(http.StatusBadRequest)
	}
	var problems []struct {
		Loc []any `json:"loc"`
	}
	if json.Unmarshal(body.Detail, &problems) != nil {
		return false
	}
	for _, p := range problems {
		if len(p.Loc) > 0 && p.Loc[0] == "body" {
			return true
		}
	}
	return false
}

// Remedy says what to do about the error of a memory service; empty if we do not
// know.
func Remedy(err error) string {
	var left *RemainsError
	if errors.As(err, &left) {
		return left.remedy()
	}
	var unlisted *UnlistedError
	if errors.As(err, &unlisted) {
		return unlisted.remedy()
	}
	var op *net.OpError
	if errors.As(err, &op) && op.Op == "dial" {
		return "start Graphiti, or correct memory.endpoint"
	}
	var s *StatusError
	if !errors.As(err, &s) || Retryable(err) && s.Code >= 500 {
		return ""
	}
	switch s.Code {
	case http.StatusUnauthorized, http.StatusForbidden:
		return "check memory.api_key: the service, or what stands before it, does not accept it"
	case http.StatusProxyAuthRequired:
		return "a proxy on the way wants credentials: check HTTP_PROXY, HTTPS_PROXY and NO_PROXY"
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusGone:
		return "check memory.endpoint: what answers there does not have Graphiti's calls"
	case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests:
		return ""
	}
	if s.Code/100 == 3 {
		return "check memory.endpoint: it answers with another address, and redirects are not followed"
	}
	if Retryable(err) {
		return "check memory.endpoint, and what stands between it and this proxy: the answer is not about what was sent"
	}
	return ""
}

// Unsent reports whether a call that failed has certainly had no effect: the
// service was not reached, or its answer says that it did nothing. Any other failed
// call may have had its effect.
func Unsent(err error) bool {
	var s *StatusError
	if errors.As(err, &s) {
		return s.Code < 500 || s.Code == http.StatusServiceUnavailable
	}
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial"
}
