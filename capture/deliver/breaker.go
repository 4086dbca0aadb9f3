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
	// more, for OpenFor. Then one is let through.
	opensAfter = 5

	// OpenFor is how long the circuit breaker stays open.
	OpenFor = 10 * time.Second
)

// errNotTried says that a call was not made, because those before it failed.
var errNotTried = errors.New("the memory is down and is left alone for a moment")

// newBreaker is the circuit breaker before the memory: while that is down,
// nothing is asked of it but whether it is up again.
func newBreaker(openFor time.Duration, changed func(open bool)) *gobreaker.CircuitBreaker[struct{}] {
	return gobreaker.NewCircuitBreaker[struct{}](gobreaker.Settings{
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
	})
}

// notTried makes our error of the breaker's.
func notTried(err error) error {
	if errors.Is(err, gobreaker.ErrOpenState) || errors.Is(err, gobreaker.ErrTooManyRequests) {
		return errNotTried
	}
	return err
}
