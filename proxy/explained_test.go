package proxy

import (
	"context"
	"log/slog"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/internal/budget"
	"github.com/graphiti-proxy/graphiti-proxy/internal/memo"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/identity"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/observe"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/wire"
)

// claim is one key of a caller and its source.
type claim struct{ Key, Why string }

// claimsOf returns one claim for each kind. Why explains a missing key.
func claimsOf(c *identity.Caller) (list []claim) {
	w := &c.Who
	for kind, key := range []string{w.Session, w.User, w.Workspace, w.Agent, w.SystemActor} {
		one := claim{key, c.Why[kind]}
		switch {
		case one.Why == "" && kind == identity.Session:
			one.Why = "not named: the messages identify the conversation"
		case key == "":
			one.Why = "nothing names one"
		}
		list = append(list, one)
	}
	return list
}

// Explanation describes the identity and the memory of a request.
type Explanation struct {
	Claims   []claim           `json:"claims"`
	Off      string            `json:"off,omitempty"` // the reason for no memory; empty if there is memory
	Status   inject.Status     `json:"status,omitempty"`
	Reason   inject.Reason     `json:"reason,omitempty"`
	Reads    []graphiti.Target `json:"reads"`
	Writes   []graphiti.Target `json:"writes"`
	Inserted []string          `json:"inserted,omitempty"` // as JSON, in the order of the body

	session string // of the turn
}

// explainFor is the timeout of an explanation. It is long because no answer is delayed.
const explainFor = 10 * time.Second

// greeting replaces a missing body. It contains a question in the format of each API.
const greeting = `{"model":"","max_tokens":1,"messages":[{"role":"user","content":"hello"}],"input":"hello","contents":[{"role":"user","parts":[{"text":"hello"}]}]}`

// Explain returns the explanation of a request to a server with this memory, by the
// function that decides about requests (decide). path includes the query. If body is nil,
// it uses a short question. It writes nothing: planner has no services, or is
// nil if memory is off.
func (m Memory) Explain(planner Planner, limits Limits, path string, header map[string][]string, body []byte) Explanation {
	s := &decider{memo: memo.New(0), base: context.Background(), log: slog.New(slog.DiscardHandler)}
	return s.explain(m, planner, limits, path, header, body)
}

func (s *decider) explain(m Memory, planner Planner, limits Limits, path string, header map[string][]string, body []byte) (e Explanation) {
	m = *m.withDefaults()
	m.Planner, m.Sessions, m.Off.Missed, m.Timeout = planner, readSessions{m.Sessions}, nil, explainFor
	if body == nil {
		body = []byte(greeting)
	}
	r := &request{head: headOf(path, header), memory: &m, limits: limits, body: wire.Body{Bytes: body, Whole: len(body) <= limits.InspectBytes}, share: new(budget.Share), buffers: new(buffers)}
	named := stripUpstream(r.head)
	r.route.Route = routeOf(r.head, wire.PlainPath(r.head.RequestURI()))
	if r.route.named = named; r.route.Dialect != nil {
		r.barred = s.barred(&m, r.head)
	}
	d := s.decide(r)
	if len(d.caller.Why[identity.User])+len(d.caller.Who.User) == 0 { // refused before the caller step
		d.caller.Caller = r.identify()
	}
	if d.who.Session != "" {
		d.caller.Who.Session, d.caller.Who.Workspace, e.session = d.who.Session, d.who.Workspace, d.who.Session
	}
	if d.project.source != "" {
		d.caller.Who.Workspace, d.caller.Why[identity.Workspace] = d.project.key, d.project.source
	}
	e.Claims, e.Status, e.Reason, e.Writes = claimsOf(&d.caller.Caller), d.plan.Outcome.Status, d.plan.Outcome.Reason, d.plan.Write
	for i := range d.plan.Searched {
		e.Reads = append(e.Reads, graphiti.Target{Scope: d.plan.Searched[i].Scope, Group: d.plan.Searched[i].Group})
	}
	for _, in := range d.plan.Inserts {
		e.Inserted = append(e.Inserted, string(in.Text))
	}
	if len(e.Reads)+len(e.Writes)+len(e.Inserted) == 0 {
		e.Off = offBecause(&d)
	}
	return e
}

// offBecause returns the reason for no memory, in words.
func offBecause(d *decision) string {
	o, why := &d.plan.Outcome, d.why
	switch {
	case o.Reason == inject.ReasonPlace && d.project.late:
		why = string(d.fate.Reason)
	case o.Reason == inject.ReasonPlace && d.project.missing != observe.MissingForm:
		why = d.project.missing.Remedy()
	}
	switch {
	case !d.understood:
		return "no API is known that has this path"
	case why != "" && o.Reason != inject.ReasonNone:
		return string(o.Reason) + ": " + why
	case why != "":
		return why
	case o.Reason != inject.ReasonNone:
		return string(o.Reason)
	case o.Status == inject.StatusOff:
		return "recall.enabled and ingest.enabled"
	}
	return ""
}

// headOf returns the head of a POST request.
func headOf(path string, header map[string][]string) *fasthttp.RequestHeader {
	h := &fasthttp.RequestHeader{}
	h.SetMethod(fasthttp.MethodPost)
	h.SetRequestURI(path)
	for name, values := range header {
		for _, v := range values {
			h.Add(name, v)
		}
	}
	return h
}

// readSessions finds sessions, but stores none.
type readSessions struct{ Sessions }

func (readSessions) SetPending(context.Context, [16]byte, string)   {}
func (readSessions) EndPending([16]byte)                            {}
func (readSessions) Put(context.Context, string, ...[16]byte) error { return nil }
func (readSessions) PutAsync([16]byte, string)                      {}

// stripUpstream removes the name of an upstream from a request's path, and returns it;
// empty if there is none. The upstream need not exist.
func stripUpstream(h *fasthttp.RequestHeader) (name string) {
	found, rest := cut(h.RequestURI())
	if found != nil {
		name = string(found)
		h.SetRequestURIBytes(rest)
	}
	return name
}
