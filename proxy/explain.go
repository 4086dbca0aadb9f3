package proxy

import (
	"log/slog"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/graphiti-proxy/graphiti-proxy/dialect"
	"github.com/graphiti-proxy/graphiti-proxy/dialect/registry"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/identity"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/wire"
)

// Explanation says who a request is from and what memory would do with it.
type Explanation struct {
	Claims []identity.Claim  `json:"claims"`
	Off    string            `json:"off,omitempty"` // why there is no memory; empty: there is
	Reads  []graphiti.Target `json:"reads"`
	Writes []graphiti.Target `json:"writes"`
}

// Explain says what the server would make of a request, without asking
// anybody: path is with the query, body may be empty.
func (m *Memory) Explain(namer graphiti.Namer, path string, header map[string][]string, body []byte) Explanation {
	var ctx fasthttp.RequestCtx
	ctx.Request.Header.SetMethod(fasthttp.MethodPost)
	ctx.Request.SetRequestURI(path)
	for name, values := range header {
		for _, v := range values {
			ctx.Request.Header.Add(name, v)
		}
	}
	c := &call{head: &ctx.Request.Header, body: wire.Body{Bytes: body, Whole: true}, memory: m}
	s := &Server{log: slog.New(slog.DiscardHandler)}
	read := false
	plain, _, _ := strings.Cut(path, "?")
	found := registry.Find(&dialect.Request{Method: []byte(fasthttp.MethodPost), Path: []byte(plain), Header: ctx.Request.Header.Peek})
	if found.Dialect != nil {
		read = found.Dialect.Parse(body, &c.conv)
	}
	if !read {
		c.conv = dialect.Conversation{Last: -1}
	}
	caller := m.Identity.Identify(&c.says, &ctx.Request.Header, &c.conv)
	w := &caller.Who
	c.mem.chained = w.Session == ""
	c.mem.at = stated(c, w)
	s.locate(c, w)
	place := s.workspaceOf(c)
	w.Workspace, c.mem.place = place.key, place
	caller.Why[identity.Workspace] = place.why
	e := Explanation{Claims: caller.Claims()}
	if read {
		c.mem.subagent = signals(&ctx.Request.Header, &c.conv)
	}
	mode := s.mode(c, &caller)
	switch {
	case m.Off != inject.ReasonNone:
		e.Off = string(m.Off)
	case caller.Contradicts:
		e.Off = string(inject.ReasonUntrusted) + ": a header that says whose memory it is stands twice, with different values"
	case !caller.Known:
		e.Off = "no person and no actor is known"
	case caller.Foreign:
		e.Off = string(inject.ReasonUntrusted) + ": a page of the web may have sent it"
	case read && c.conv.Last < 0:
		e.Off = string(inject.ReasonNoUserMessage)
	case read && c.conv.Kind != dialect.KindTurn && c.conv.Kind != dialect.KindSummary:
		e.Off = string(inject.KindReason(c.conv.Kind))
	case !mode.Recall && !mode.Ingest:
		if e.Off = string(mode.Reason); e.Off == "" {
			e.Off = "recall.enabled and ingest.enabled"
		}
	}
	if e.Off == "" && mode.Recall {
		e.Reads = namer.Reads(*w, false)
	}
	if e.Off == "" && mode.Ingest {
		e.Writes = namer.Writes(*w)
	}
	return e
}
