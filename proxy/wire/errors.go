package wire

import (
	"errors"

	"github.com/valyala/fasthttp"
)

// ClientError is the reason why a request cannot be forwarded.
type ClientError struct {
	Status     int
	Message    string
	RetryAfter int // seconds; 0 if unknown
}

func (e *ClientError) Error() string { return e.Message }

// Code returns the machine-readable error code.
func (e *ClientError) Code() string {
	switch e.Status {
	case fasthttp.StatusTooManyRequests:
		return "rate_limit_error"
	case fasthttp.StatusNotImplemented:
		return "not_implemented"
	}
	return "invalid_request_error"
}

// ErrBodyLate reports that the client fell silent within a body.
var ErrBodyLate = &ClientError{Status: fasthttp.StatusRequestTimeout, Message: "graphiti-proxy: the request's body did not arrive in time; limits.body_timeout limits its silence"}

// ErrClientKey reports a request without a valid key of client.keys.
var ErrClientKey = &ClientError{Status: fasthttp.StatusUnauthorized, Message: "graphiti-proxy: the request has no key of the setting client.keys; send one as the API key, or add yours there"}

// errUnknownUpstream answers a request for an unconfigured upstream: sending it to
// another would leak its credential and conversation.
var errUnknownUpstream = &ClientError{Status: fasthttp.StatusNotFound, Message: "graphiti-proxy: the path is not /u/NAME/… with a name from the setting upstreams; add the name there, or correct the base URL"}

var (
	errHTTP2   = &ClientError{Status: fasthttp.StatusNotImplemented, Message: "graphiti-proxy: only HTTP/1.1 is supported; turn off HTTP/2 without TLS in the client"}
	errUpgrade = &ClientError{Status: fasthttp.StatusNotImplemented, Message: "graphiti-proxy: upgrades to protocols other than websocket are not forwarded; turn them off in the client"}
	errCoding  = &ClientError{Status: fasthttp.StatusBadRequest, Message: "graphiti-proxy: the request's Transfer-Encoding is not chunked"}
	errField   = &ClientError{Status: fasthttp.StatusBadRequest, Message: "graphiti-proxy: a header line is folded, has no colon, or has a blank in its name"}
	errTarget  = &ClientError{Status: fasthttp.StatusBadRequest, Message: "graphiti-proxy: the request's target is not a path; send a path that begins with /"}
	errShort   = &ClientError{Status: fasthttp.StatusBadRequest, Message: "graphiti-proxy: the request's body ended early"}
	errBody    = &ClientError{Status: fasthttp.StatusBadRequest, Message: "graphiti-proxy: the request's body cannot be read"}
)

// errBodyCut reports that an upstream switched protocols before it had received the
// entire request.
var errBodyCut = errors.New("the request's body did not reach its end")
