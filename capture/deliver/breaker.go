package deliver

import (
	"context"
	"errors"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

const (
	// opensAfter is the number of consecutive failures that open the breaker.
	opensAfter = 5

	// OpenFor is how long the breaker stays open.
	OpenFor = 10 * time.Second
)

// ErrNotTried means that a call was skipped because earlier ones failed.
var ErrNotTried = errors.New("the memory is down, calls are paused for a moment")

// Breaker is a circuit breaker. It is safe for concurrent use.
type Breaker struct {
	of *gobreaker.CircuitBreaker[struct{}]
}

// NewBreaker returns a Breaker that stays open for openFor. It calls changed when it opens
// or closes.
func NewBreaker(openFor time.Duration, changed func(open bool)) *Breaker {
	return &Breaker{gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
		Timeout:     openFor,
		ReadyToTrip: func(c gobreaker.Counts) bool { return c.ConsecutiveFailures >= opensAfter },
		OnStateChange: func(_ string, _, to gobreaker.State) {
			if to != gobreaker.StateHalfOpen {
				changed(to == gobreaker.StateOpen)
			}
		},
		// A refusal is an answer, so it counts as success.
		IsSuccessful: func(err error) bool { return err == nil || !graphiti.Retryable(err) },
		IsExcluded:   func(err error) bool { return errors.Is(err, context.Canceled) },
	})}
}

// State returns "open", "half-open" or "closed".
func (b *Breaker) State() string { return b.of.State().String() }

// Try calls f, or returns ErrNotTried if the breaker is open.
func (b *Breaker) Try(f func() error) error {
	_, err := b.of.Execute(func() (struct{}, error) { return struct{}{}, f() })
	if errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests) {
		return ErrNotTried
	}
	return err
}
