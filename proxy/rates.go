package proxy

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/internal/memo"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/observe"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/wire"
)

// Rates limits the requests of a person or a credential. Zero means no limit.
type Rates struct{ Requests, Tokens int } // a minute

const (
	// maxBuckets limits the buckets in RAM. The one with the oldest request begins anew.
	maxBuckets = 20_000

	// maxDebt is the longest time that the tokens of one answer delay later requests, in
	// minutes.
	maxDebt = 10

	// shareEvery is the interval of exchanges with other replicas. Between two
	// exchanges, a replica counts alone; later requests pay for an excess.
	shareEvery = time.Second
)

// ShareRates adds the times spent from buckets to those of all replicas, and returns the time until
// each bucket is full again, without the full ones.
type ShareRates func(ctx context.Context, spent map[[32]byte]time.Duration) (until map[[32]byte]time.Duration, err error)

// rates limits all requests of a process. It is safe for concurrent use.
type rates struct {
	mu      sync.Mutex // protects the fields below, and makes a check and its effect one step
	set     Rates
	buckets *memo.LRU[[32]byte, *bucket]
	unsent  map[[32]byte]*bucket // with an unsent time; nil without other replicas
}

// bucket is one limit of a person or a credential. It refills within a minute.
type bucket struct {
	key    [32]byte
	unit   time.Duration // refills one request or token
	full   time.Time     // when it is full again
	unsent time.Duration // part of full that other replicas do not know
}

// Set changes the limits. Changed ones begin anew.
func (r *rates) Set(to Rates) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.set = to; r.buckets == nil {
		r.buckets = memo.NewLRU[[32]byte, *bucket](maxBuckets)
	}
}

// Admit counts a request for its payers, or refuses it if one of them has reached a limit. It
// returns the buckets of tokens.
func (r *rates) Admit(h *fasthttp.RequestHeader, of func(*fasthttp.RequestHeader) []string, now time.Time) (tokens []*bucket, limit string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.set == (Rates{}) {
		return nil, "", nil
	}
	var requests []*bucket
	var wait time.Duration
	check := func(payer, what string, most int) *bucket {
		b := r.bucketLocked(graphiti.Digest("rate", what, strconv.Itoa(most), payer))
		b.unit = time.Minute / time.Duration(most)
		if w := max(0, b.full.Sub(now)) + b.unit - time.Minute; w > wait {
			wait, limit = w, what
		}
		return b
	}
	for _, payer := range of(h) {
		if r.set.Requests > 0 {
			requests = append(requests, check(payer, "requests", r.set.Requests))
		}
		if r.set.Tokens > 0 {
			tokens = append(tokens, check(payer, "tokens", r.set.Tokens))
		}
	}
	if wait > 0 {
		after := int(math.Ceil(wait.Seconds()))
		most := map[string]int{"requests": r.set.Requests, "tokens": r.set.Tokens}[limit]
		return nil, limit, &wire.ClientError{Status: fasthttp.StatusTooManyRequests, RetryAfter: after,
			Message: fmt.Sprintf("graphiti-proxy: more than %d %s a minute, the limit limits.%s_per_minute; try again in %d s", most, limit, limit, after)}
	}
	r.spendLocked(requests, 1, now)
	return tokens, "", nil
}

// bucketLocked returns a bucket, which is full if it is new.
func (r *rates) bucketLocked(key [32]byte) *bucket {
	b, known := r.buckets.Get(key)
	if !known {
		b = &bucket{key: key}
		r.buckets.Add(key, b, 1)
	}
	return b
}

// Spend counts the tokens of a request and its answer. They are known only at the end, so they
// delay later requests.
func (r *rates) Spend(tokens []*bucket, n int, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.spendLocked(tokens, n, now)
}

func (r *rates) spendLocked(from []*bucket, n int, now time.Time) {
	for _, b := range from {
		spent := time.Duration(min(float64(b.unit)*float64(n), float64(maxDebt*time.Minute)))
		if b.full.Before(now) {
			b.full = now
		}
		b.full = b.full.Add(spent)
		if r.unsent != nil && len(r.unsent) < maxBuckets {
			b.unsent += spent
			r.unsent[b.key] = b
		}
	}
}

// pay counts a request for its payers, or refuses it.
func (s *Server) pay(c *call) ([]*bucket, error) {
	tokens, limit, err := s.rates.Admit(c.head, c.memory.Identity.Payers, time.Now())
	if err != nil {
		s.observer.Limited(limit)
		c.seen.Did(c.head, observe.LogEntry{To: c.route.upstream.Name, Who: c.identify().Who}, new(inject.Plan)) // the log names the caller
	}
	return tokens, err
}

// spends returns a function that takes the tokens of a request and its answer from the rates.
func (s *Server) spends(c *call) func(tokens int) {
	from := c.tokens // c is reused
	return func(n int) { s.rates.Spend(from, n, time.Now()) }
}

// ShareRates counts the requests and tokens of callers together with other replicas, until the
// returned function is called. Requests never wait for it. While share fails, this replica counts
// alone.
func (s *Server) ShareRates(share ShareRates) (end func()) {
	_, _ = s.rates.unshared(time.Now()) // starts to count unsent times
	ctx, cancel := context.WithCancel(s.base)
	var done sync.WaitGroup
	// Ends with end.
	done.Go(func() {
		t := time.NewTicker(shareEvery)
		defer t.Stop()
		for failing := false; ctx.Err() == nil; {
			err := s.rates.share(ctx, share)
			if err != nil && !failing && ctx.Err() == nil {
				s.log.Warn("share the rates of callers failed, this replica counts alone", "error", err)
			}
			failing = err != nil
			select {
			case <-ctx.Done():
			case <-t.C:
			}
		}
	})
	return func() {
		cancel()
		done.Wait()
	}
}

// share exchanges the buckets with the other replicas.
func (r *rates) share(ctx context.Context, share ShareRates) error {
	spent, some := r.unshared(time.Now())
	if !some {
		return nil
	}
	until, err := share(ctx, spent)
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, d := range spent {
		if b, known := r.buckets.Get(key); err != nil && known {
			b.unsent += d
			r.unsent[key] = b
		}
	}
	for key, d := range until {
		b := r.bucketLocked(key)
		b.full = now.Add(d + b.unsent)
	}
	return err
}

// unshared takes the unsent times of buckets that have not refilled. some is false without limits.
func (r *rates) unshared(now time.Time) (spent map[[32]byte]time.Duration, some bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	spent = make(map[[32]byte]time.Duration)
	for key, b := range r.unsent {
		if d := min(b.unsent, b.full.Sub(now)); d > 0 {
			spent[key] = d
		}
		b.unsent = 0
	}
	r.unsent = make(map[[32]byte]*bucket)
	return spent, r.set != Rates{}
}
