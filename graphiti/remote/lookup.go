package remote

import (
	"context"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// LookUp returns the facts that still exist, in the order of uuids. one looks a fact up; its error for a
// missing fact is an error that Present ignores.
func LookUp(ctx context.Context, group string, uuids []string, one func(ctx context.Context, uuid string) (FactJSON, error)) (facts []graphiti.Fact, err error) {
	for _, uuid := range uuids {
		f, err := one(ctx, uuid)
		switch {
		case err == nil && f.UUID == uuid && (f.Group == "" || f.Group == group):
			facts = append(facts, f.In(group))
		case err == nil:
			return facts, ErrNotGraphiti
		case Present(err) != nil:
			return facts, err
		}
	}
	return facts, nil
}
