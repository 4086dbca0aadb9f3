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
	maxPassed = 512 // requests that are noted, the newest
	maxModel  = 64  // bytes of a model's name
	maxPath   = 256 // bytes of a path
)

// Passed is one request that passed. Nothing that was said is in it.
type Passed struct {
	Number int // in the order in which requests ended, from 1 on
	ID     string
	Began  time.Time

	Client, Version, Model string
	API                    string // the dialect's name; empty: none is known
	Path                   string
	Status                 int // 0: there was no answer
	Stream                 bool

	Outcome  inject.Outcome // its status is empty where no model answers
	Blocks   int            // that were sent with the request
	Upstream time.Duration  // from memory's end to the answer's head
	Total    time.Duration
	Searches []Search

	Input, Cached int // tokens, as the provider said them

	Session string // its key; empty where it is not known
	Turn    string
	Person  string // the key of a person who is proven among several; else empty
}

// Search is one search for a request.
type Search struct {
	Scope  graphiti.Scope
	Source inject.Source
	Found  int
	Took   time.Duration
	Failed string // timeout or error
}

// passed are the newest requests. It is safe for concurrent use. What one needs is used
// again for another.
type passed struct {
	spare sync.Pool // of *passing

	mu   sync.Mutex // guards what follows, and what is in the ring
	ring [maxPassed]*passing
	last int // the number of the newest
}

// passing is a request that passes. Until it is added to the ring it belongs to the
// goroutine that serves it.
type passing struct {
	id atomic.Uint64 // of the request; 0: of none

	began           time.Time
	client, api     string
	version, model  []byte
	path            []byte
	status, blocks  int
	stream          bool
	outcome         inject.Outcome
	ready           time.Time // when memory was done with it
	upstream, total time.Duration
	searches        []Search
	who             graphiti.Who
	turn            string

	input, cached int // guarded by passed.mu
}

// NotePassed has the newest requests noted, for Passed. It is called before the first one.
func (o *Observer) NotePassed() {
	o.passed = &passed{spare: sync.Pool{New: func() any { return new(passing) }}}
}

// begin returns what is noted of a request; nil: nothing is.
func (l *passed) begin(id uint64, began time.Time) *passing {
	if l == nil {
		return nil
	}
	p := l.spare.Get().(*passing) //nolint:forcetypeassert // the pool's only type
	p.id.Store(id)
	p.began = began
	return p
}

// add notes a request that has ended.
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

// reset empties a request, but keeps its memory. It belongs to none from now on, so that a
// late reader of its answer changes nothing. The caller holds passed.mu.
func (p *passing) reset() {
	p.id.Store(0)
	p.began, p.ready = time.Time{}, time.Time{}
	p.client, p.api, p.turn = "", "", ""
	p.version, p.model, p.path, p.searches = p.version[:0], p.model[:0], p.path[:0], p.searches[:0]
	p.status, p.blocks, p.stream, p.outcome, p.who = 0, 0, false, inject.Outcome{}, graphiti.Who{}
	p.upstream, p.total, p.input, p.cached = 0, 0, 0, 0
}

// used notes what the provider said of a request's tokens.
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

// Deed is what was done for a request, and for whom.
type Deed struct {
	API     string          // empty: none is known
	Program dialect.Program // the client; without a name: not known
	Model   []byte          // as it stands in the body
	Who     graphiti.Who
	Blocks  int
}

// Did notes what memory did for a request, which goes to its upstream now.
func (r *Request) Did(h *fasthttp.RequestHeader, d Deed, plan *inject.Plan) {
	p := r.passing
	if p == nil {
		return
	}
	p.ready = time.Now()
	p.named(d.Program, h)
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

// named notes which client sent the request.
func (p *passing) named(of dialect.Program, h *fasthttp.RequestHeader) {
	agent := h.UserAgent()
	if of.Name == "" {
		product, _, _ := bytes.Cut(agent, []byte{'/'})
		of.Name = dialect.Named(string(product))
	}
	name, version := called(of, agent)
	if likeKey(name) {
		name = hidden
	}
	p.client, p.version = name, append(p.version[:0], version...)
}

// appendModel writes a model's name as it may be shown.
func appendModel(dst, raw []byte) []byte {
	name := bytes.Trim(raw, `"`)
	odd := func(r rune) bool { return r <= ' ' || r > '~' || r == '"' || r == '\\' || r == '<' }
	if len(name) > maxModel || bytes.ContainsFunc(name, odd) || likeKey(string(name)) {
		return append(dst, hidden...)
	}
	return append(dst, name...)
}

// Headed notes that the head of the answer has come.
func (r *Request) Headed() {
	if p := r.passing; p != nil && p.upstream == 0 && !p.ready.IsZero() {
		p.upstream = time.Since(p.ready)
	}
}

// pass notes a request that ends. Its path is noted already.
func (r *Request) pass(status int, stream bool) {
	p := r.passing
	if p == nil {
		return
	}
	r.passing = nil
	p.status, p.stream, p.total = status, stream, time.Since(r.began)
	r.o.passed.add(p)
}

// headOf notes the path and the client of a request while its head is there.
func (r *Request) headOf(h *fasthttp.RequestHeader) {
	if p := r.passing; p != nil {
		p.at(loggedPath(h.RequestURI()))
		if p.client == "" {
			p.named(dialect.Program{}, h)
		}
	}
}

func (p *passing) at(path string) {
	if len(path) > maxPath {
		path = path[:maxPath-len("…")] + "…"
	}
	p.path = append(p.path[:0], path...)
}

// Passed returns up to limit of the newest requests behind the one with a number, oldest
// first: those of an owner, or of everybody where that is empty. A number that is not
// given yet is one of an earlier process.
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
		Client: p.client, Version: string(p.version), Model: string(p.model), API: p.api, Path: string(p.path), Status: p.status, Stream: p.stream,
		Outcome: p.outcome, Blocks: p.blocks, Upstream: p.upstream, Total: p.total, Searches: slices.Clone(p.searches),
		Input: p.input, Cached: p.cached, Session: p.who.Session, Turn: p.turn, Person: personOf(&p.who),
	}
}

// personOf returns the person who is proven, where several have memories.
func personOf(w *graphiti.Who) string {
	if w.Tenant == "" || !w.Proven {
		return ""
	}
	return w.User
}
