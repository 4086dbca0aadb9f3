package service

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// slow counts searches, which take a time.
type slow struct {
	graphiti.Searcher
	takes    time.Duration
	searches int
}

func (s *slow) Search(ctx context.Context, _ []string, _ string, _ int) ([]graphiti.Fact, error) {
	select {
	case <-time.After(s.takes):
		s.searches++
		return []graphiti.Fact{{UUID: "1", Text: "is"}}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// TestSlowSearchesAreBounded: facts of a slow memory are listed from a few searches, in place of
// an error after all of them. A memory that is too slow for one search is an error with a remedy.
func TestSlowSearchesAreBounded(t *testing.T) {
	for _, tc := range []struct {
		takes time.Duration
		want  int
		late  bool
	}{{time.Second, 3, false}, {time.Minute, 0, true}} {
		synctest.Test(t, func(t *testing.T) {
			s, began := &slow{takes: tc.takes + time.Millisecond}, time.Now()
			sv := &Service{o: Options{Memory: &graphiti.Memory{Searcher: s}}}
			said := make([]Known, 50)
			err := sv.searchBy(t.Context(), "g", said, func(*graphiti.Fact) {})
			if errors.Is(err, context.DeadlineExceeded) != tc.late || tc.late && !strings.Contains(err.Error(), "to do") {
				t.Errorf("searches of %s: got %v, want an error with a remedy: %v", tc.takes, err, tc.late)
			}
			if s.searches != tc.want || time.Since(began) > askedFor {
				t.Errorf("searches of %s: got %d in %s, want %d in %s", tc.takes, s.searches, time.Since(began), tc.want, askedFor)
			}
		})
	}
}
