package remote

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// atOnce is the number of concurrent lookups.
const atOnce = 4

// LookUp returns the facts that still exist, in the order of uuids, and the first error.
// one looks a fact up; its error for a missing fact is an error that Present ignores.
// LookUp returns after all calls have ended.
func LookUp(ctx context.Context, group string, uuids []string, one func(ctx context.Context, uuid string) (FactJSON, error)) ([]graphiti.Fact, error) {
	found := make([]*graphiti.Fact, len(uuids))
	calls, each := errgroup.WithContext(ctx)
	calls.SetLimit(atOnce)
	for i, uuid := range uuids {
		calls.Go(func() error {
			if each.Err() != nil {
				return each.Err()
			}
			f, err := one(each, uuid)
			switch {
			case err == nil && f.UUID == uuid && (f.Group == "" || f.Group == group):
				fact := f.In(group)
				found[i] = &fact
				return nil
			case err == nil:
				return ErrNotGraphiti
			}
			return Present(err)
		})
	}
	err := calls.Wait()
	var facts []graphiti.Fact
	for _, f := range found {
		if f != nil {
			facts = append(facts, *f)
		}
	}
	return facts, err
}
