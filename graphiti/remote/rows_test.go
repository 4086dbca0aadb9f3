package remote

import (
	"context"
	"errors"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// growing is a service that stores a message after a number of listings.
type growing struct{ listings, after int }

func (g *growing) Search(context.Context, []string, string, int) ([]graphiti.Fact, error) {
	return []graphiti.Fact{{Text: "My dog is called Rex."}}, nil
}

func (g *growing) Episodes(ctx context.Context, group string, _ int) (list []graphiti.Row, err error) {
	err = g.Export(ctx, group, func(e graphiti.Row) error {
		list = append(list, e)
		return nil
	})
	return list, err
}

func (g *growing) Export(_ context.Context, group string, f func(graphiti.Row) error) error {
	if g.listings++; g.listings <= g.after {
		return nil
	}
	return f(graphiti.Row{Group: group, Name: graphiti.EpisodeName("1", graphiti.RoleUser), Role: graphiti.RoleUser, Text: "My dog is called Rex."})
}

// TestRowsOfAGroupThatGrows: a message that is stored between a listing and the search is
// listed. A group is unlisted only if a second listing is empty too.
func TestRowsOfAGroupThatGrows(t *testing.T) {
	for _, tc := range []struct {
		name     string
		after    int
		rows     int
		unlisted bool
	}{{"listed", 0, 1, false}, {"stored meanwhile", 1, 1, false}, {"unlisted", 9, 0, true}} {
		for _, last := range []int{0, 5} {
			rows, unlisted := 0, false
			for _, err := range Rows(t.Context(), &growing{after: tc.after}, "g", graphiti.Filter{Last: last}) {
				var u *graphiti.UnlistedError
				if unlisted = errors.As(err, &u); err == nil {
					rows++
				}
			}
			if rows != tc.rows || unlisted != tc.unlisted {
				t.Errorf("%s, last %d: got %d rows, unlisted %v; want %d, %v", tc.name, last, rows, unlisted, tc.rows, tc.unlisted)
			}
		}
	}
}
