package admin

import (
	"net/http"
	"strings"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/time/rate"

	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

const (
	// callsPerSecond limits the calls and pages of one caller.
	callsPerSecond = 100

	// maxCalls limits the calls of operators that run at the same time, and likewise the
	// calls of all people together. maxOfOne limits the calls of one person.
	maxCalls = 32
	maxOfOne = 8

	// guessesPerSecond limits the wrong credentials of one address.
	guessesPerSecond = 5

	// maxLimited bounds the number of keys with a limit; the least used ones are forgotten.
	maxLimited = 4096

	// maxConns limits the open connections. The file descriptors that package wire leaves to
	// others suffice for them.
	maxConns = 4 * maxCalls

	// maxTime bounds the time for the bodies of a call, which may also wait for the memory.
	maxTime = time.Hour
)

// limits are rate limits by key: one key cannot use up another's. They are safe for
// concurrent use.
type limits[K comparable] struct {
	rate  rate.Limit
	burst int
	by    *lru.Cache[K, *rate.Limiter]
}

func newLimits[K comparable](perSecond, burst int) *limits[K] {
	by, _ := lru.New[K, *rate.Limiter](maxLimited) // fails only for a negative size
	return &limits[K]{rate: rate.Limit(perSecond), burst: burst, by: by}
}

// of returns the limit of a key.
func (l *limits[K]) of(key K) *rate.Limiter {
	if one, ok := l.by.Get(key); ok {
		return one
	}
	one := rate.NewLimiter(l.rate, l.burst)
	if other, ok, _ := l.by.PeekOrAdd(key, one); ok {
		return other
	}
	return one
}

// keyOf returns the key of a caller: a person with several credentials has one key.
func keyOf(c service.Caller) service.Caller {
	if !c.Operator {
		c.Name = ""
	}
	return c
}

// places bound the calls that run at the same time, separately for operators and for
// people. They are safe for concurrent use.
type places struct {
	mu    sync.Mutex // protects taken
	taken map[any]int
}

func newPlaces() *places { return &places{taken: make(map[any]int)} }

// take takes a place for a call. ok is false if there is none.
func (p *places) take(c service.Caller, imports bool) (leave func(), ok bool) {
	type importer service.Caller
	c = keyOf(c)
	most := map[any]int{c.Operator: maxCalls}
	if !c.Operator {
		most[c] = maxOfOne
	}
	if imports && !c.Operator {
		most[importer(c)] = 1
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for key, n := range most {
		if p.taken[key] >= n {
			return nil, false
		}
	}
	for key := range most {
		p.taken[key]++
	}
	return func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for key := range most {
			if p.taken[key]--; p.taken[key] == 0 {
				delete(p.taken, key)
			}
		}
	}, true
}

// isImport reports whether a program or a page imports a file.
func isImport(r *http.Request) bool {
	return r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/"+service.Import.Name)
}

// refusing answers a call that is not served.
type refusing func(w http.ResponseWriter, status int, why string)

// tooManyCalls is the answer to a caller beyond their rate.
const tooManyCalls = "too many calls; try again in a second"

func tooMany(w http.ResponseWriter, refuse refusing, why string) {
	w.Header().Set("Retry-After", "1")
	refuse(w, http.StatusTooManyRequests, why)
}

// limited serves a call within the limits of its caller: on calls per second, on calls at
// the same time, and on its time.
func (s *Server) limited(refuse refusing, next http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		caller := callerOf(r.Context())
		if !s.calls.of(keyOf(caller)).Allow() {
			tooMany(w, refuse, tooManyCalls)
			return
		}
		leave, ok := s.places.take(caller, isImport(r))
		if !ok {
			tooMany(w, refuse, "too many calls of yours, or another import, are running; try again when some have ended")
			return
		}
		defer leave()
		c, end := http.NewResponseController(w), time.Now().Add(maxTime)
		_, _ = c.SetReadDeadline(end), c.SetWriteDeadline(end)
		next(w, r)
	}
}
