package capture

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sony/gobreaker/v2"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

const (
	// opensAfter is how many calls in a row must fail until none is made any
	// more, for openFor. Then one is let through.
	opensAfter = 5
	openFor    = 10 * time.Second
)

// errNotTried says that a call was not made, because those before it failed.
var errNotTried = errors.New("the memory is down and is left alone for a moment")

// gate is the circuit breaker before the memory: while it is down, nothing is
// asked of it but whether it is up again.
type gate struct {
	breaker *gobreaker.TwoStepCircuitBreaker[struct{}]
	health  func(context.Context) error
}

func newGate(health func(context.Context) error, open time.Duration, changed func(isOpen bool)) *gate {
	return &gate{health: health, breaker: gobreaker.NewTwoStepCircuitBreaker[struct{}](gobreaker.Settings{
		Timeout:     open,
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

// call makes one call. The first after a pause asks for health before.
func (g *gate) call(ctx context.Context, f func(context.Context) error) (err error) {
	done, err := g.breaker.Allow()
	if err != nil {
		return errNotTried
	}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("a call to the memory panicked: %v", r)
		}
		done(err)
	}()
	if g.breaker.State() == gobreaker.StateHalfOpen {
		if err := g.health(ctx); err != nil {
			return fmt.Errorf("%w (%w)", errNotTried, err)
		}
	}
	return f(ctx)
}

// state is closed, half-open or open.
func (g *gate) state() string { return g.breaker.State().String() }
