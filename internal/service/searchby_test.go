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
	takes           time.Duration
	searches, named int
}

func (s *slow) wait(ctx context.Context, count *int) error {
	select {
	case <-time.After(s.takes):
		*count++
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *slow) Search(ctx context.Context, _ []string, _ string, _ int) ([]graphiti.Fact, error) {
	return []graphiti.Fact{{UUID: "1", Text: "is"}}, s.wait(ctx, &s.searches)
}

func (s *slow) Entities(ctx context.Context, _, _ string, _ int) ([]graphiti.Entity, error) {
	return nil, s.wait(ctx, &s.named)
}

// TestSlowSearchesAreBounded: facts and names of a slow memory are listed from a few searches,
// in place of an error after all of them. A memory that is too slow for one search is an
// error with a remedy.
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
			facts := sv.searchBy(t.Context(), "g", said, func(*graphiti.Fact) {})
			names := sv.nameNodes(t.Context(), "g", said, nil)
			for _, err := range []error{facts, names} {
				if errors.Is(err, context.DeadlineExceeded) != tc.late || tc.late && !strings.Contains(err.Error(), "to do") {
					t.Errorf("searches of %s: got %v, want an error with a remedy: %v", tc.takes, err, tc.late)
				}
			}
			if s.searches != tc.want || s.named != tc.want || time.Since(began) > 2*askedFor {
				t.Errorf("searches of %s: got %d for facts and %d for names in %s, want %d each in %s", tc.takes, s.searches, s.named, time.Since(began), tc.want, 2*askedFor)
			}
		})
	}
}
