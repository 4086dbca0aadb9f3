package remote

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// trials are the timed queries. They differ, so that no cache answers.
var trials = []string{"Where do I live?", "Which database did we decide on?", "When is the wedding?", "What is the name of my dentist?", "Why did the deploy fail?"}

// SearchTimes reports whether searches for max facts are answered within the time that a
// request waits. group, if not empty, is a group with content, since finding something
// takes time as well. It reports no result if a search fails.
func SearchTimes(ctx context.Context, m *graphiti.Memory, group string, max int, timeout time.Duration, report func(Check)) {
	began := time.Now()
	var took []time.Duration
	found := 0
	for _, q := range trials {
		start := time.Now()
		facts, err := m.Search(ctx, []string{cmp.Or(group, "graphiti_proxy_check")}, q, max)
		if err != nil {
			return
		}
		took, found = append(took, time.Since(start)), found+len(facts)
	}
	slices.Sort(took)
	s := graphiti.SearchTimes{Count: len(took), Half: took[len(took)/2].Milliseconds(), Most: took[len(took)-1].Milliseconds(), Timeout: timeout.Milliseconds()}
	detail := s.String()
	if found == 0 {
		detail += "; without results, and searches with results take longer"
	}
	report(Check{Name: "searches in time", Took: time.Since(began), OK: true, Detail: detail, Remedy: s.Late()})
}
