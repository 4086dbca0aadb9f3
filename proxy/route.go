package proxy

import (
	"bytes"

	"github.com/valyala/fasthttp"

	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/dialect"
)

// api is one whose requests and answers are understood. The two sides
// meet here and nowhere else.
type api struct {
	suffix  string // of the path
	request dialect.Dialect
	answer  capture.Dialect
	count   bool // no turn, but a conversation as it stands: what was decided is inserted, and nothing else happens
}

// dialects lists the APIs that get a memory.
var dialects = []api{
	{suffix: "/chat/completions", request: dialect.Chat{}, answer: capture.Chat{}},
	{suffix: "/responses", request: dialect.Responses{}, answer: capture.Responses{}},
	{suffix: "/responses/compact", request: dialect.Responses{}, count: true},
	{suffix: "/responses/input_tokens", request: dialect.Responses{}, count: true},
	{suffix: "/messages", request: dialect.Messages{}, answer: capture.Messages{}},
	{suffix: "/messages/count_tokens", request: dialect.Messages{}, count: true},
}

// responsesDialect is also what is spoken over WebSocket.
var responsesDialect = &dialects[1]

// route says where a request goes and whether it is understood.
type route struct {
	dialect  *api // nil: forwarded as it is
	upstream *upstream
}

// match finds the route of a request by its path's end, because prefixes
// differ: /v1, /openai/deployments/{name}, /api/v1.
func (s *Server) match(h *fasthttp.RequestHeader) route {
	path, _, _ := bytes.Cut(originForm(h.RequestURI()), []byte{'?'})
	r := route{upstream: s.way().openai}
	if isAnthropic(h, path) {
		r.upstream = s.way().anthropic
	}
	if !h.IsPost() {
		return r
	}
	for i := range dialects {
		if bytes.HasSuffix(path, []byte(dialects[i].suffix)) {
			r.dialect = &dialects[i]
		}
	}
	return r
}

// isAnthropic tells the requests that belong to Anthropic's API: both vendors
// have paths such as /v1/models and /v1/files.
func isAnthropic(h *fasthttp.RequestHeader, path []byte) bool {
	return bytes.HasPrefix(path, []byte("/v1/messages")) ||
		len(h.Peek("Anthropic-Version")) > 0 ||
		bytes.HasPrefix(h.UserAgent(), []byte("claude-cli/"))
}
