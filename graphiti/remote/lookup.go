package remote

import (
	"context"
	"errors"
	"sync"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// atOnce is the number of concurrent lookups.
const atOnce = 4

// LookUp returns the facts that still exist, in the order of uuids, and the first error.
// one looks a fact up; its error for a missing fact is an error that Present ignores.
// LookUp returns after all calls have ended.
func LookUp(ctx context.Context, group string, uuids []string, one func(ctx context.Context, uuid string) (FactJSON, error)) ([]graphiti.Fact, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	found, next := make([]*graphiti.Fact, len(uuids)), make(chan int)
	var working sync.WaitGroup
	for range min(atOnce, len(uuids)) {
		// Ends when next is closed; Wait waits for this.
		working.Go(func() { lookUpEach(ctx, stop, next, group, uuids, found, one) })
	}
	for i := range uuids {
		if ctx.Err() != nil {
			break
		}
		next <- i
	}
	close(next)
	working.Wait()
	var facts []graphiti.Fact
	for _, f := range found {
		if f != nil {
			facts = append(facts, *f)
		}
	}
	if ctx.Err() != nil {
		return facts, context.Cause(ctx)
	}
	return facts, nil
}

// lookUpEach looks up facts by their index until next is closed. After an error it skips
// the rest.
func lookUpEach(ctx context.Context, fail context.CancelCauseFunc, next <-chan int, group string, uuids []string, found []*graphiti.Fact, one func(ctx context.Context, uuid string) (FactJSON, error)) {
	for i := range next {
		if ctx.Err() != nil {
			continue
		}
		f, err := one(ctx, uuids[i])
		switch {
		case err == nil && f.UUID == uuids[i] && (f.Group == "" || f.Group == group):
			fact := f.In(group)
			found[i] = &fact
		case err == nil:
			fail(ErrNotGraphiti)
		case Present(err) != nil && !errors.Is(err, context.Canceled):
			fail(err)
		}
	}
}
