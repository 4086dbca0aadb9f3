package main

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

const (
	// probeEvery is how often the memory is asked whether it works. In
	// Graphiti a search costs a call to the embedding model.
	probeEvery = 20 * time.Second

	// healthTimeout bounds each of the questions.
	healthTimeout = 2 * time.Second
)

// probed is how the memory was when it was asked. It is not changed.
type probed struct {
	at      time.Time // zero: it has not been asked
	health  error
	search  error     // only where health is nil
	since   time.Time // since when one of them fails; zero: none does
	emptied int       // blocks
}

// prober asks the memory from time to time how it is, so that whoever wants to
// know need not wait for it, and cannot make it work.
type prober struct {
	memory  *graphiti.Memory
	allowed func() bool                        // whether it may be asked
	emptied func(context.Context) (int, error) // counts blocks

	last   atomic.Pointer[probed]
	asked  chan chan struct{} // by whom does not want to wait for the next time
	ctx    context.Context    // ends with Close
	cancel context.CancelFunc
	ended  chan struct{}
}

func newProber(m *graphiti.Memory, allowed func() bool, emptied func(context.Context) (int, error)) *prober {
	p := &prober{memory: m, allowed: allowed, emptied: emptied, asked: make(chan chan struct{}), ended: make(chan struct{})}
	p.last.Store(&probed{})
	p.ctx, p.cancel = context.WithCancel(context.Background())
	// Ends with Close.
	go p.run()
	return p
}

// Close returns when the memory is not asked any more.
func (p *prober) Close() {
	p.cancel()
	<-p.ended
}

// run asks at once, and then each time that it is due or asked for.
func (p *prober) run() {
	defer close(p.ended)
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	var waiting []chan struct{}
	for {
		p.last.Store(p.probe(p.last.Load()))
		for _, w := range waiting {
			close(w)
		}
		waiting = waiting[:0]
		select {
		case <-p.ctx.Done():
			return
		case <-tick.C:
		case w := <-p.asked:
			waiting = append(waiting, w)
		}
		for more := true; more; { // one answer for all
			select {
			case w := <-p.asked:
				waiting = append(waiting, w)
			default:
				more = false
			}
		}
	}
}

// fresh has the memory asked, and returns when it has been, or ctx ends.
func (p *prober) fresh(ctx context.Context) {
	done := make(chan struct{})
	select {
	case p.asked <- done:
	case <-ctx.Done():
		return
	case <-p.ended:
		return
	}
	select {
	case <-done:
	case <-ctx.Done():
	case <-p.ended:
	}
}

// probe asks once.
func (p *prober) probe(before *probed) *probed {
	if !p.allowed() {
		return &probed{}
	}
	now := &probed{at: time.Now()}
	now.health = p.bounded(p.memory.Health)
	if now.health == nil {
		now.search = p.bounded(func(ctx context.Context) error {
			_, err := p.memory.Search(ctx, []string{"graphiti_proxy_check"}, "test", 1)
			return err
		})
	}
	if p.bounded(func(ctx context.Context) (err error) {
		now.emptied, err = p.emptied(ctx)
		return err
	}) != nil {
		now.emptied = before.emptied
	}
	if now.health != nil || now.search != nil {
		if now.since = before.since; now.since.IsZero() {
			now.since = now.at
		}
	}
	return now
}

// bounded makes one call; a fault of it is none of the proxy's.
func (p *prober) bounded(f func(context.Context) error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("the question panicked: %v", r)
		}
	}()
	ctx, cancel := context.WithTimeout(p.ctx, healthTimeout)
	defer cancel()
	return f(ctx)
}
