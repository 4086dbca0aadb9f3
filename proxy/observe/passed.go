package observe

import (
	"bytes"
	"slices"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

const (
	maxPassed = 512 // recorded requests
	maxModel  = 64  // bytes of a model's name
	maxPath   = 256 // bytes of a path
)

// Passed is the record of one request. It contains no messages.
type Passed struct {
	Number int // in the order of the requests' ends, from 1
	ID     string
	Began  time.Time

	Client, Version, Model string
	API                    string // the dialect's name; empty if unknown
	Path                   string
	Status                 int // 0 if there was no answer
	Stream                 bool

	Outcome  inject.Outcome // without a status if no model answers
	Fate     graphiti.Fate  // of the newest message
	Blocks   int            // in the outgoing request
	Upstream time.Duration  // from the plan to the answer's head
	Total    time.Duration
	Searches []Search

	Input, Cached int // tokens, as the provider reported them

	Session string // key; empty if unknown
	Turn    string
	Person  string // key of a proven person, if several persons have memories; else empty
}

// Search is one search for a request.
type Search struct {
	Scope  graphiti.Scope
	Source inject.Source
	Found  int
	Took   time.Duration
	Failed string // timeout or error
}

// passed records the newest requests. It is safe for concurrent use.
type passed struct {
	mu   sync.Mutex // guards ring, its elements, and last
	ring [maxPassed]*passing
	last int // the number of the newest
}

// passing is the record of a request. Until it is added to the ring, it belongs to the
// goroutine that serves the request.
type passing struct {
	id uint64 // of the request

	began           time.Time
	client, api     string
	version         string
	model, path     string
	status, blocks  int
	stream          bool
	outcome         inject.Outcome
	ready           time.Time // the time of the plan
	upstream, total time.Duration
	searches        []Search
	who             graphiti.Who
	turn            string

	input, cached int           // guarded by passed.mu
	fate          graphiti.Fate // the same
}

// NotePassed turns on the record of the newest requests, for Passed. It must be called
// before the first request.
func (o *Observer) NotePassed() {
	o.passed = new(passed)
}

// begin returns the record of a new request; nil if requests are not recorded.
func (l *passed) begin(id uint64, began time.Time) *passing {
	if l == nil {
		return nil
	}
	return &passing{id: id, began: began}
}

// add adds a request that has ended to the ring.
func (l *passed) add(p *passing) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last++
	l.ring[l.last%maxPassed] = p
}

// used records a request's tokens, as the provider reported them.
func (l *passed) used(p *passing, u dialect.Usage) {
	if p == nil || u.Input <= 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	p.input, p.cached = u.Input, u.Cached
}

// settled records the new fate of a request's message.
func (l *passed) settled(p *passing, f graphiti.Fate) {
	if p == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	p.fate = p.fate.Next(f)
}

// Deed contains the caller, the API and the blocks of a request.
type Deed struct {
	API     string          // empty if unknown
	Program dialect.Program // the client; without a name if unknown
	Model   []byte          // from the body
	Who     graphiti.Who
	Blocks  int
	Fate    graphiti.Fate // of the newest message
}

// Did records the plan of a request, directly before it is sent to its upstream.
func (r *Request) Did(h *fasthttp.RequestHeader, d Deed, plan *inject.Plan) {
	r.fate = d.Fate
	p := r.passing
	if p == nil {
		return
	}
	r.o.passed.settled(p, d.Fate)
	p.ready = time.Now()
	p.named(d.Program, h)
	p.outcome = plan.Outcome
	if p.api = d.API; p.api == "" {
		return
	}
	p.model = modelName(d.Model)
	p.blocks, p.turn, p.who = d.Blocks, plan.Turn, d.Who
	for i := range plan.Searched {
		l := &plan.Searched[i]
		s := Search{Scope: l.Scope, Source: l.Source, Found: l.Found, Took: l.Took}
		if l.Err != nil {
			s.Failed = faultOf(l.Err)
		}
		p.searches = append(p.searches, s)
	}
}

// named records the client's name and version.
func (p *passing) named(of dialect.Program, h *fasthttp.RequestHeader) {
	agent := h.UserAgent()
	if of.Name == "" {
		product, _, _ := bytes.Cut(agent, []byte{'/'})
		of.Name = dialect.Named(string(product))
	}
	client := named(of, agent)
	p.client, p.version = client.shown, client.version
}

// modelName returns a model's name, or hidden if the name must not be displayed.
func modelName(raw []byte) string {
	name := bytes.Trim(raw, `"`)
	odd := func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' || r == '<' }
	if len(name) > maxModel || bytes.ContainsFunc(name, odd) || likeKey(string(name)) {
		return hidden
	}
	return string(name)
}

// Headed notes that the head of the answer has arrived.
func (r *Request) Headed() {
	if p := r.passing; p != nil && p.upstream == 0 && !p.ready.IsZero() {
		p.upstream = time.Since(p.ready)
	}
}

// pass records the end of a request. The path must be recorded before.
func (r *Request) pass(now time.Time, status int, stream bool) {
	p := r.passing
	if p == nil {
		return
	}
	r.passing = nil
	p.status, p.stream, p.total = status, stream, now.Sub(r.began)
	r.o.passed.add(p)
}

// headOf returns the path of a request if it is recorded or logged, and records the path
// and the client before the head is reused.
func (r *Request) headOf(h *fasthttp.RequestHeader) (path string) {
	p := r.passing
	if p != nil || r.o.logged() {
		path = loggedPath(h.RequestURI())
	}
	if p != nil {
		p.at(path)
		if p.client == "" {
			p.named(dialect.Program{}, h)
		}
	}
	return path
}

func (p *passing) at(path string) {
	if len(path) > maxPath {
		path = path[:maxPath-len("…")] + "…"
	}
	p.path = path
}

// Passed returns up to limit of the newest requests after the one with number after,
// oldest first. If owner is not empty, it returns only the owner's requests. A number
// that is too high is from an earlier process, and counts as 0.
func (o *Observer) Passed(after, limit int, owner string) (list []Passed) {
	l := o.passed
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if after > l.last {
		after = 0
	}
	for n := l.last; n > max(after, l.last-maxPassed) && len(list) < limit; n-- {
		if p := l.ring[n%maxPassed]; owner == "" || p.who.Owner() == owner {
			list = append(list, p.shown(o, n))
		}
	}
	slices.Reverse(list)
	return list
}

func (p *passing) shown(o *Observer, number int) Passed {
	r := Request{o: o, id: p.id}
	return Passed{
		Number: number, ID: string(r.AppendID(nil)), Began: p.began,
		Client: p.client, Version: p.version, Model: p.model, API: p.api, Path: p.path, Status: p.status, Stream: p.stream,
		Outcome: p.outcome, Fate: p.fate, Blocks: p.blocks, Upstream: p.upstream, Total: p.total, Searches: slices.Clone(p.searches),
		Input: p.input, Cached: p.cached, Session: p.who.Session, Turn: p.turn, Person: personOf(&p.who),
	}
}

// personOf returns the proven person, if several persons have memories; else empty.
func personOf(w *graphiti.Who) string {
	if w.Tenant == "" || !w.Proven {
		return ""
	}
	return w.User
}
