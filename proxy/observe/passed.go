package observe

import (
	"bytes"
	"slices"
	"sync"
	"sync/atomic"
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

// passed records the newest requests, and reuses the records of older ones. It is safe
// for concurrent use.
type passed struct {
	spare sync.Pool // of *passing

	mu   sync.Mutex // guards ring, its elements, and last
	ring [maxPassed]*passing
	last int // the number of the newest
}

// passing is the record of a request. Until it is added to the ring, it belongs to the
// goroutine that serves the request.
type passing struct {
	id atomic.Uint64 // of the request; 0 if there is none

	began           time.Time
	client, api     string
	version         string
	model           []byte
	path            []byte
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
	o.passed = &passed{spare: sync.Pool{New: func() any { return new(passing) }}}
}

// begin returns the record of a new request; nil if requests are not recorded.
func (l *passed) begin(id uint64, began time.Time) *passing {
	if l == nil {
		return nil
	}
	p := l.spare.Get().(*passing) //nolint:forcetypeassert // the pool's only type
	p.id.Store(id)
	p.began = began
	return p
}

// add adds a request that has ended to the ring.
func (l *passed) add(p *passing) {
	l.mu.Lock()
	l.last++
	at := &l.ring[l.last%maxPassed]
	old := *at
	*at = p
	if old != nil {
		old.reset()
	}
	l.mu.Unlock()
	if old != nil {
		l.spare.Put(old)
	}
}

// reset clears a record for reuse. It sets the id to 0, so that a late call of used has no
// effect. The caller holds passed.mu.
func (p *passing) reset() {
	p.id.Store(0)
	p.began, p.ready = time.Time{}, time.Time{}
	p.client, p.version, p.api, p.turn = "", "", "", ""
	p.model, p.path, p.searches = p.model[:0], p.path[:0], p.searches[:0]
	p.status, p.blocks, p.stream, p.outcome, p.who = 0, 0, false, inject.Outcome{}, graphiti.Who{}
	p.upstream, p.total, p.input, p.cached, p.fate = 0, 0, 0, 0, graphiti.Fate{}
}

// used records a request's tokens, as the provider reported them.
func (l *passed) used(p *passing, id uint64, u dialect.Usage) {
	if p == nil || u.Input <= 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.id.Load() == id {
		p.input, p.cached = u.Input, u.Cached
	}
}

// settled records the new fate of a request's message.
func (l *passed) settled(p *passing, id uint64, f graphiti.Fate) {
	if p == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.id.Load() == id {
		p.fate = f
	}
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
	r.o.passed.settled(p, r.id, d.Fate)
	p.ready = time.Now()
	p.named(r.o, d.Program, h)
	p.outcome = plan.Outcome
	if p.api = d.API; p.api == "" {
		return
	}
	p.model = appendModel(p.model[:0], d.Model)
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
func (p *passing) named(o *Observer, of dialect.Program, h *fasthttp.RequestHeader) {
	agent := h.UserAgent()
	if of.Name == "" {
		product, _, _ := bytes.Cut(agent, []byte{'/'})
		of.Name = dialect.Named(string(product))
	}
	client := o.clients.named(of, agent)
	p.client, p.version = client.shown, client.version
}

// appendModel appends a model's name, or hidden if the name must not be displayed.
func appendModel(dst, raw []byte) []byte {
	name := bytes.Trim(raw, `"`)
	odd := func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' || r == '<' }
	if len(name) > maxModel || bytes.ContainsFunc(name, odd) || likeKey(string(name)) {
		return append(dst, hidden...)
	}
	return append(dst, name...)
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
			p.named(r.o, dialect.Program{}, h)
		}
	}
	return path
}

func (p *passing) at(path string) {
	if len(path) > maxPath {
		path = path[:maxPath-len("…")] + "…"
	}
	p.path = append(p.path[:0], path...)
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
	r := Request{o: o, id: p.id.Load()}
	return Passed{
		Number: number, ID: string(r.AppendID(nil)), Began: p.began,
		Client: p.client, Version: p.version, Model: string(p.model), API: p.api, Path: string(p.path), Status: p.status, Stream: p.stream,
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
