package proxy

import (
	"context"
	"errors"
	"net"
	"os"

	"github.com/valyala/fasthttp"

	"github.com/graphiti-proxy/graphiti-proxy/dialect"
)

// errGone says that the client left: there is nobody to answer.
var errGone = errors.New("client left")

// clientError is a request that cannot be forwarded, and why.
type clientError struct {
	status  int
	message string
}

func (e *clientError) Error() string { return e.message }

// code is what programs read.
func (e *clientError) code() string {
	switch e.status {
	case fasthttp.StatusNotImplemented:
		return "not_implemented"
	case fasthttp.StatusLoopDetected:
		return "loop_detected"
	}
	return "invalid_request_error"
}

// errBodyLate says that the client fell silent in the middle of a body.
var errBodyLate = &clientError{fasthttp.StatusRequestTimeout, "graphiti-proxy: the request's body did not arrive in time; limits.body_timeout bounds the silence in one"}

// statusGone is what logs and traces say of a client that left; nobody is told
// so, and the number is nginx's.
const statusGone = 499

// writeError answers with an error of the proxy's own, in the shape that the
// API's clients understand; OpenAI's where the API is not known.
func (s *Server) writeError(c *call, err error) {
	ctx := c.ctx
	ctx.SetConnectionClose()
	if errors.Is(err, errGone) || c.abandoned() && !errors.Is(err, errBodyLate) {
		c.status = statusGone
		s.metrics.abandoned()
		c.client.mute()
		return
	}
	status, kind, message := fasthttp.StatusBadGateway, "upstream_unreachable", ""
	var ce *clientError
	switch {
	case errors.As(err, &ce):
		status, kind, message = ce.status, ce.code(), ce.message
	case noDescriptors(err):
		status, kind = fasthttp.StatusServiceUnavailable, "out_of_file_descriptors"
		s.metrics.failed(c.route.upstream, resultUnreachable)
		message = "graphiti-proxy: there are no file descriptors left to connect to the upstream " + c.route.upstream.host +
			"; raise the limit of open files (ulimit -n, LimitNOFILE of systemd), or lower limits.connections"
	case isTimeout(err):
		status, kind = fasthttp.StatusGatewayTimeout, "upstream_timeout"
		s.metrics.failed(c.route.upstream, resultTimeout)
		message = "graphiti-proxy: the upstream " + c.route.upstream.host + " did not answer in time"
	default:
		s.metrics.failed(c.route.upstream, resultUnreachable)
		message = "graphiti-proxy: the upstream " + c.route.upstream.host + " could not be reached or broke off"
	}
	c.status = status
	if status >= 500 && ce == nil {
		s.log.Warn("a request to an upstream fails", "error", err)
	}
	typ := "api_error"
	if status < 500 {
		typ = kind
	}
	ctx.Response.Reset()
	ctx.SetStatusCode(status)
	ctx.SetContentType("application/json")
	if c.mem.header {
		ctx.Response.Header.Set(memoryHeader, string(appendOutcome(nil, &c.mem.outcome)))
		ctx.Response.Header.Set(requestHeader, string(s.ids.append(nil, c.id)))
	}
	ctx.SetConnectionClose()
	s.logRequest(c, status, ctx.Time())
	failure := dialect.Failure{Status: status, Type: typ, Code: kind, Message: message}
	if c.route.speaks != nil {
		ctx.SetBody(c.route.speaks.Error(failure))
		return
	}
	ctx.SetBody(dialect.OpenAIError(failure))
}

func isTimeout(err error) bool {
	var ne net.Error
	return errors.Is(err, os.ErrDeadlineExceeded) || errors.Is(err, context.DeadlineExceeded) ||
		errors.As(err, &ne) && ne.Timeout()
}
