package service

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// slow counts searches of two seconds each.
type slow struct {
	graphiti.Searcher
	searches int
}

func (s *slow) Search(context.Context, []string, string, int) ([]graphiti.Fact, error) {
	<-time.After(2 * time.Second)
	s.searches++
	return []graphiti.Fact{{UUID: "1", Text: "is"}}, nil
}

// TestSlowSearchesAreBounded: facts of a slow memory are listed from a few searches, in place
// of an error after all of them.
func TestSlowSearchesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, found := &slow{}, 0
		sv := &Service{o: Options{Memory: &graphiti.Memory{Searcher: s}}}
		if err := sv.searchBy(t.Context(), "g", make([]Known, 50), func(*graphiti.Fact) { found++ }); err != nil {
			t.Fatal(err)
		}
		if s.searches != 3 || found != 1 {
			t.Errorf("got %d facts in %d searches, want 1 in 3", found, s.searches)
		}
	})
}
