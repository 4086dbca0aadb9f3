package observe

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
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

// passed records the newest requests. It is safe for concurrent use.
type passed struct {
	mu   sync.Mutex // guards ring, its elements, and last
	ring [maxPassed]*passing
	last int // the number of the newest
}

// passing is the record of a request, without messages. Until the request has ended, it belongs to
// the goroutine that serves the request.
type passing struct {
	graphiti.LoggedRequest // its tokens are guarded by passed.mu; shown completes it

	// Guarded by passed.mu.
	fate         graphiti.Fate
	ended, reads bool // the request has ended; its answer is still being read

	id                    uint64 // of the request
	method, outcome       string
	began, arrived, ready time.Time // arrived is the end of the body, and ready the time of the plan
	who                   graphiti.Who
	model                 model  // that it asks
	owner                 string // hash of the owner, for a request of an earlier process
}

// saved is the stored form of a request.
type saved struct {
	graphiti.LoggedRequest
	Owner string `json:"owner"` // hash
}

// end adds a request that has ended to the ring, and reports whether its answer was read.
func (l *passed) end(p *passing) (whole bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p.ended = true
	l.last++
	l.ring[l.last%maxPassed] = p
	return !p.reads
}

// reading records the start or the cancellation of the reading of an answer.
func (l *passed) reading(p *passing, reads bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p.reads = reads
}

// used records the end of an answer and its tokens, as the provider reported them, and reports
// whether the request has ended, too.
func (l *passed) used(p *passing, u dialect.Usage) (whole bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if p.reads = false; u.Input > 0 {
		p.InputTokens, p.CachedTokens, p.OutputTokens = u.Input, u.Cached, u.Output
	}
	return p.ended
}

// settled records the new fate of a request's message, and reports whether the request has ended.
func (l *passed) settled(p *passing, f graphiti.Fate) (ended bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	p.fate = p.fate.Next(f)
	return p.ended
}

// LogEntry contains the caller, the API and the blocks of a request.
type LogEntry struct {
	API     string          // empty if unknown
	To      string          // name of the upstream
	Program dialect.Program // the client; without a name if unknown
	Model   []byte          // from the body
	Serves  string          // provider whose API is used
	Who     graphiti.Who
	Blocks  int
	Fate    graphiti.Fate // of the newest message
}

// Did records the plan of a request, directly before it is sent to its upstream.
func (r *Request) Did(h *fasthttp.RequestHeader, d LogEntry, plan *inject.Plan) {
	r.model = model{usageKey{d.To, modelName(d.Model), tenantOf(&d.Who)}, d.Serves, time.Now()}
	r.spans.did(r, &d)
	r.Settled(d.Fate)
	p := r.passing
	p.ready, p.Upstream, p.who = r.model.sent, d.To, d.Who
	p.AddedMs = milliseconds(p.ready.Sub(p.arrived))
	p.named(d.Program, h)
	o := &plan.Outcome
	p.Memory, p.Reason, p.Source, p.Facts, p.Chars, p.MemoryMs = string(o.Status), string(o.Reason), string(o.Source), o.Facts, o.Chars, milliseconds(o.Took)
	if p.API = d.API; p.API == "" {
		return
	}
	p.Model = r.model.model
	p.Blocks, p.Turn = d.Blocks, plan.Turn
	for i := range plan.Searched {
		l := &plan.Searched[i]
		s := graphiti.LoggedSearch{Scope: string(l.Scope), Source: string(l.Source), Found: l.Found, Ms: milliseconds(l.Took)}
		if l.Err != nil {
			s.Failed = faultOf(l.Err)
		}
		p.Searches = append(p.Searches, s)
	}
}

// model is the model of a request.
type model struct {
	usageKey
	provider string
	sent     time.Time // of the request
}

// tenantOf returns a short form of a caller's tenant, or "" if there is one memory only.
func tenantOf(who *graphiti.Who) string { return who.Tenant[:min(len(who.Tenant), 12)] }

// personOf returns the name of a proven person, or its hash; "" if there is one memory only.
func (o *Observer) personOf(who *graphiti.Who) string {
	if who.Tenant == "" || !who.Proven {
		return ""
	}
	if o.hashes.Load() {
		return graphiti.PersonHash(who.User)
	}
	return who.User
}

// named records the client's name and version.
func (p *passing) named(of dialect.Program, h *fasthttp.RequestHeader) {
	agent := h.UserAgent()
	if of.Name == "" {
		product, _, _ := bytes.Cut(agent, []byte{'/'})
		of.Name = dialect.Named(string(product))
	}
	client := named(of, agent)
	p.Client, p.Version = client.shown, client.version
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

// Arrived notes that the whole request has arrived.
func (r *Request) Arrived() { r.arrived = time.Now() }

// Headed notes that the head of the answer has arrived.
func (r *Request) Headed() {
	if r.UpstreamMs == 0 && !r.ready.IsZero() {
		r.UpstreamMs = milliseconds(time.Since(r.ready))
	}
}

func (p *passing) at(method, path string) {
	if len(path) > maxPath {
		path = path[:maxPath-len("…")] + "…"
	}
	p.method, p.Path = method, path
}

// Passed returns up to limit of the newest requests after the one with number after,
// oldest first. If owner is not empty, it returns only the owner's requests. A number
// that is too high is from an earlier process, and counts as 0.
func (o *Observer) Passed(after, limit int, owner string) (list []graphiti.LoggedRequest) {
	l := &o.passed
	l.mu.Lock()
	defer l.mu.Unlock()
	if after > l.last {
		after = 0
	}
	hash := graphiti.PersonHash(owner)
	for n := l.last; n > max(after, l.last-maxPassed) && len(list) < limit; n-- {
		if p := l.ring[n%maxPassed]; owner == "" || p.owner == hash || p.owner == "" && p.who.Owner() == owner {
			list = append(list, p.shown(o, n))
		}
	}
	slices.Reverse(list)
	return list
}

// SavePassed returns the newest requests for RestorePassed if there are any after the one with number
// after, and the number of the newest.
func (o *Observer) SavePassed(after int) (b []byte, last int) {
	l := &o.passed
	l.mu.Lock()
	if l.last == after {
		l.mu.Unlock()
		return nil, after
	}
	var list []saved
	for n := max(1, l.last-maxPassed+1); n <= l.last; n++ {
		p := l.ring[n%maxPassed]
		list = append(list, saved{p.shown(o, n), cmp.Or(p.owner, graphiti.PersonHash(p.who.Owner()))})
	}
	last = l.last
	l.mu.Unlock()
	b, _ = json.Marshal(list) // strings, numbers and booleans
	return b, last
}

// RestorePassed adds the requests of an earlier process. It must be called before the first request.
func (o *Observer) RestorePassed(b []byte) error {
	var list []saved
	if err := json.Unmarshal(b, &list); err != nil {
		return err
	}
	l := &o.passed
	for _, s := range list[max(0, len(list)-maxPassed):] {
		l.last++
		l.ring[l.last%maxPassed] = &passing{LoggedRequest: s.LoggedRequest, owner: s.Owner}
	}
	return nil
}

// shown returns a request with its number. A request of an earlier process is complete.
func (p *passing) shown(o *Observer, number int) graphiti.LoggedRequest {
	r := p.LoggedRequest
	if r.Number = number; p.owner != "" {
		if o.hashes.Load() && r.Person != "" && !strings.HasPrefix(r.Person, graphiti.HashedPerson) {
			r.Person = graphiti.PersonHash(r.Person)
		}
		return r
	}
	r.ID, r.Time = string(o.appendID(nil, p.id)), p.began.UTC().Format("2006-01-02T15:04:05.000Z07:00")
	r.Fate, r.Cause, r.Earlier = string(p.fate.Name), p.fate.Reason, p.fate.Earlier
	r.Conversation, r.Person, r.Tenant = graphiti.SessionHash(p.who.Session), o.personOf(&p.who), tenantOf(&p.who)
	return r
}

// milliseconds returns a time in milliseconds, to the microsecond.
func milliseconds(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
