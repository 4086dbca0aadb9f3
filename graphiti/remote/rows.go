package remote

import (
	"context"
	"errors"
	"iter"
	"slices"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// episodes lists the episodes of a service.
type episodes interface {
	Episodes(ctx context.Context, group string, n int) ([]graphiti.Row, error)
	Export(ctx context.Context, group string, f func(graphiti.Row) error) error
}

var errStopped = errors.New("the caller stopped")

// Rows implements graphiti.Lister for a service that lists episodes.
func Rows(ctx context.Context, c episodes, group string, f graphiti.Filter) iter.Seq2[graphiti.Row, error] {
	return func(yield func(graphiti.Row, error) bool) {
		if group == "" {
			yield(graphiti.Row{}, errors.ErrUnsupported)
			return
		}
		var list []graphiti.Row
		err := read(ctx, c, group, &f, func(r graphiti.Row) bool {
			if f.Newest {
				list = append(list, r)
				return true
			}
			return yield(r, nil)
		})
		switch {
		case errors.Is(err, errStopped):
		case err != nil:
			yield(graphiti.Row{}, err)
		default:
			slices.SortStableFunc(list, func(a, b graphiti.Row) int { return a.Said.Compare(b.Said) })
			for i, r := range slices.Backward(list) {
				r.Rest = i
				if !yield(r, nil) {
					return
				}
			}
		}
	}
}

// read calls f for each selected row in the order of storage.
func read(ctx context.Context, c episodes, group string, filter *graphiti.Filter, f func(graphiti.Row) bool) error {
	each := func(e graphiti.Row) error {
		for _, r := range e.Sides() {
			if filter.Has(&r) && !f(r) {
				return errStopped
			}
		}
		return nil
	}
	if filter.Last == 0 {
		return c.Export(ctx, group, each)
	}
	episodes, err := c.Episodes(ctx, group, filter.Last)
	for i := 0; i < len(episodes) && err == nil; i++ {
		err = each(episodes[i])
	}
	return err
}
