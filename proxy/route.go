package proxy

import (
	"bytes"

	"github.com/valyala/fasthttp"

	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
)

// dialect is an API whose requests and answers are understood. The two sides
// meet here and nowhere else.
type dialect struct {
	suffix  string // of the path
	request inject.Dialect
	answer  capture.Dialect
	count   bool // no turn, but a conversation as it stands: what was decided is inserted, and nothing else happens
}

// dialects lists the APIs that get a memory.
var dialects = []dialect{
	{suffix: "/chat/completions", request: inject.Chat{}, answer: capture.Chat{}},
	{suffix: "/responses", request: inject.Responses{}, answer: capture.Responses{}},
	{suffix: "/responses/compact", request: inject.Responses{}, count: true},
	{suffix: "/responses/input_tokens", request: inject.Responses{}, count: true},
	{suffix: "/messages", request: inject.Messages{}, answer: capture.Messages{}},
	{suffix: "/messages/count_tokens", request: inject.Messages{}, count: true},
}

// responsesDialect is also what is spoken over WebSocket.
var responsesDialect = &dialects[1]

// route says where a request goes and whether it is understood.
type route struct {
	dialect  *dialect // nil: forwarded as it is
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
