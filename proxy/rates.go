package proxy

import (
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/valyala/fasthttp"
	"golang.org/x/time/rate"

	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/internal/memo"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/observe"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/wire"
)

// Rates limits the requests of a person or a credential. Zero means no limit.
type Rates struct{ Requests, Tokens int } // a minute

// maxPayers limits the people and credentials with limits of their own. The one with the oldest
// request begins anew.
const maxPayers = 10_000

// maxDebt is the longest time that the tokens of one answer delay later requests, in minutes.
const maxDebt = 10

// rates limits all requests of a process. It is safe for concurrent use.
type rates struct {
	mu     sync.Mutex // protects the fields below, and makes a check and its effect one step
	set    Rates
	payers *memo.LRU[string, payer]
}

// payer has the limits of a person or a credential, which are nil if they are off.
type payer struct{ requests, tokens *rate.Limiter }

// Set changes the limits. All payers begin anew if they differ.
func (r *rates) Set(to Rates) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.payers == nil || r.set != to {
		r.set, r.payers = to, memo.NewLRU[string, payer](maxPayers)
	}
}

// Admit counts a request for its payers, or refuses it if one of them has reached a limit.
func (r *rates) Admit(h *fasthttp.RequestHeader, of func(*fasthttp.RequestHeader) []string, now time.Time) (all []payer, limit string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.set == (Rates{}) {
		return nil, "", nil
	}
	var wait time.Duration
	for _, name := range of(h) {
		p, known := r.payers.Get(name)
		if !known {
			p = payer{perMinute(r.set.Requests), perMinute(r.set.Tokens)}
			r.payers.Add(name, p, 1)
		}
		all = append(all, p)
		if w := untilOne(p.requests, now); w > wait {
			wait, limit = w, "requests"
		}
		if w := untilOne(p.tokens, now); w > wait {
			wait, limit = w, "tokens"
		}
	}
	if wait > 0 {
		after := int(math.Ceil(wait.Seconds()))
		most := map[string]int{"requests": r.set.Requests, "tokens": r.set.Tokens}[limit]
		return nil, limit, &wire.ClientError{Status: fasthttp.StatusTooManyRequests, RetryAfter: after,
			Message: fmt.Sprintf("graphiti-proxy: more than %d %s a minute, the limit limits.%s_per_minute; try again in %d s", most, limit, limit, after)}
	}
	for _, p := range all {
		if p.requests != nil {
			p.requests.AllowN(now, 1)
		}
	}
	return all, "", nil
}

// pay counts a request for its payers, or refuses it.
func (s *Server) pay(c *call) ([]payer, error) {
	all, limit, err := s.rates.Admit(c.head, c.memory.Identity.Payers, time.Now())
	if err != nil {
		s.observer.Limited(limit)
		c.seen.Did(c.head, observe.LogEntry{To: c.route.upstream.Name, Who: c.identify().Who}, new(inject.Plan)) // the log names the caller
	}
	return all, err
}

// perMinute returns a limiter that is full, or nil for no limit.
func perMinute(n int) *rate.Limiter {
	if n == 0 {
		return nil
	}
	return rate.NewLimiter(rate.Limit(float64(n)/60), n)
}

// untilOne returns the time until a limiter admits one.
func untilOne(l *rate.Limiter, now time.Time) time.Duration {
	if l == nil {
		return 0
	}
	missing := 1 - l.TokensAt(now)
	return time.Duration(max(0, missing) / float64(l.Limit()) * float64(time.Second))
}

// spend counts the tokens of a request and its answer. They are known only at the end, so they
// delay later requests.
func spend(all []payer, tokens int, now time.Time) {
	for _, p := range all {
		if p.tokens == nil {
			continue
		}
		for left := min(tokens, maxDebt*p.tokens.Burst()); left > 0; left -= p.tokens.Burst() {
			p.tokens.ReserveN(now, min(left, p.tokens.Burst()))
		}
	}
}
