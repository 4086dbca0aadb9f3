package proxy

import (
	"errors"
	"strconv"

	"github.com/valyala/fasthttp"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/observe"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/wire"
)

// statusGone is the status in logs and traces for a client that disconnected. It is
// never sent. The number is nginx's.
const statusGone = 499

// writeError answers with an error of the proxy in the API's format, and returns the
// status.
func (s *Server) writeError(c *call, ctx *fasthttp.RequestCtx, d decision, err error) (status int) {
	if errors.Is(err, wire.ErrGone) || c.x.Gone() && !errors.Is(err, wire.ErrBodyLate) {
		s.observer.Abandoned()
		c.x.Unanswered()
		return statusGone
	}
	upstream, kind, message := c.route.upstream, "upstream_unreachable", ""
	status = fasthttp.StatusBadGateway
	var ce *wire.ClientError
	switch {
	case errors.As(err, &ce):
		status, kind, message = ce.Status, ce.Code(), ce.Message
	case wire.NoDescriptors(err):
		status, kind = fasthttp.StatusServiceUnavailable, "out_of_file_descriptors"
		s.observer.NoAnswer(upstream.Name, observe.Unreachable)
		message = "graphiti-proxy: there are no file descriptors left to connect to the upstream " + upstream.Host +
			"; raise the limit of open files (ulimit -n, LimitNOFILE of systemd), or lower limits.connections"
	case wire.IsTimeout(err):
		status, kind = fasthttp.StatusGatewayTimeout, "upstream_timeout"
		s.observer.NoAnswer(upstream.Name, observe.Timeout)
		message = "graphiti-proxy: the upstream " + upstream.Host + " did not answer in time"
	default:
		s.observer.NoAnswer(upstream.Name, observe.Unreachable)
		message = "graphiti-proxy: the upstream " + upstream.Host + " could not be reached or closed the connection"
	}
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
	if d.understood {
		ctx.Response.Header.Set(memoryHeader, string(d.plan.Outcome.Append(nil)))
		ctx.Response.Header.Set(requestHeader, string(c.seen.AppendID(nil)))
	}
	if ce != nil && ce.RetryAfter > 0 {
		ctx.Response.Header.Set(fasthttp.HeaderRetryAfter, strconv.Itoa(ce.RetryAfter))
	}
	ctx.SetConnectionClose()
	failure := dialect.Failure{Status: status, Type: typ, Code: kind, Message: message}
	ctx.SetBody(c.route.Speaks.Error(failure))
	return status
}
