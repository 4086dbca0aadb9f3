package health

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

const (
	// probeEvery is the interval between checks of the memory.
	probeEvery = 20 * time.Second

	// searchEvery is the interval between searches of a service: each one costs a call to
	// its embedding model.
	searchEvery = 5 * time.Minute

	// healthTimeout limits each call of a probe.
	healthTimeout = 2 * time.Second
)

// Probe is the result of one check of the memory. It is immutable.
type Probe struct {
	At       time.Time // zero before the first check
	Health   error
	Search   error     // of the last search; set only if Health is nil
	Searched time.Time // time of the last search; zero before the first, and while Health is set
	Since    time.Time // start of the failure; zero without one
}

// Prober checks the memory in the background, so that status requests neither wait for it
// nor add load.
type Prober struct {
	memory  *graphiti.Memory
	allowed func() bool // reports whether the memory may be called

	last   atomic.Pointer[Probe]
	mu     sync.Mutex      // held during a check
	ctx    context.Context // ends with Close
	cancel context.CancelFunc
	checks sync.WaitGroup
}

// NewProber returns a Prober that checks until Close.
func NewProber(m *graphiti.Memory, allowed func() bool) *Prober {
	p := &Prober{memory: m, allowed: allowed}
	p.last.Store(&Probe{})
	p.ctx, p.cancel = context.WithCancel(context.Background())
	p.checks.Go(p.run) // ends with Close
	return p
}

// Close stops the checks after the current one.
func (p *Prober) Close() {
	p.cancel()
	p.checks.Wait()
}

func (p *Prober) run() {
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for {
		p.check(false)
		select {
		case <-p.ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// check checks the memory, unless a check has begun since the call.
func (p *Prober) check(asked bool) {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.Last().At.After(now) {
		return
	}
	p.last.Store(p.probe(p.last.Load(), asked))
}

// Last returns the newest Probe.
func (p *Prober) Last() *Probe { return p.last.Load() }

// Ask requests a check, and returns after it or at the end of ctx.
func (p *Prober) Ask(ctx context.Context) {
	done := make(chan struct{})
	p.checks.Go(func() { defer close(done); p.check(true) }) // its calls are bounded
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// probe checks the memory once. It searches at intervals, while searches fail, and if asked:
// then someone waits for the result.
func (p *Prober) probe(before *Probe, asked bool) *Probe {
	if !p.allowed() {
		return &Probe{}
	}
	now := &Probe{At: time.Now()}
	now.Health = p.bounded(p.memory.Health)
	switch {
	case now.Health != nil:
	case !asked && before.Search == nil && time.Since(before.Searched) < searchEvery:
		now.Searched = before.Searched
	default:
		now.Searched = now.At
		now.Search = p.bounded(func(ctx context.Context) error {
			return graphiti.TrySearch(ctx, p.memory, "graphiti_proxy_check", "test")
		})
	}
	if now.Health != nil || now.Search != nil {
		if now.Since = before.Since; now.Since.IsZero() {
			now.Since = now.At
		}
	}
	return now
}

// bounded calls f with healthTimeout and recovers from a panic.
func (p *Prober) bounded(f func(context.Context) error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("a panic while it was asked: %v", r)
		}
	}()
	ctx, cancel := context.WithTimeout(p.ctx, healthTimeout)
	defer cancel()
	return f(ctx)
}
