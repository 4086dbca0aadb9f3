package deliver

import (
	"context"
	"errors"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

const (
	// opensAfter is how many calls in a row must fail until none is made any
	// more for a while. Then one is let through.
	opensAfter = 5

	// OpenFor is how long the breaker stays open.
	OpenFor = 10 * time.Second
)

// ErrNotTried says that a call was not made, because those before it failed.
var ErrNotTried = errors.New("the memory is down and is left alone for a moment")

// Breaker is a circuit breaker. It is safe for concurrent use.
type Breaker struct {
	of *gobreaker.CircuitBreaker[struct{}]
}

// NewBreaker returns a Breaker that stays open for so long, and says when it opens and
// when it closes.
func NewBreaker(openFor time.Duration, changed func(open bool)) *Breaker {
	return &Breaker{gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		Timeout:     openFor,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= opensAfter },
		OnStateChange: func(_ string, _, to gobreaker.State) {
			if to != gobreaker.StateHalfOpen {
				changed(to == gobreaker.StateOpen)
			}
		},
		// What the memory refuses, it has understood.
		IsSuccessful: func(err error) bool { return err == nil || !graphiti.Retryable(err) },
		IsExcluded:   func(err error) bool { return errors.Is(err, context.Canceled) },
	})}
}

// State is open, half-open or closed, in words.
func (b *Breaker) State() string { return b.of.State().String() }

// Try calls f, unless the calls before it failed: then it returns ErrNotTried.
func (b *Breaker) Try(f func() error) error {
	_, err := b.of.Execute(func() (struct{}, error) { return struct{}{}, f() })
	if errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests) {
		return ErrNotTried
	}
	return err
}
