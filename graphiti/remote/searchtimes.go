package remote

import (
	"context"
	"slices"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// trials are questions whose searches are timed; none is like another, so that
// no cache answers them.
var trials = []string{"Where do I live?", "Which database did we decide on?", "When is the wedding?", "What is the name of my dentist?", "Why did the deploy fail?"}

// SearchTimes reports whether searches are answered within the time that a
// request waits for one. It reports nothing where they fail.
func SearchTimes(ctx context.Context, m *graphiti.Memory, timeout time.Duration, report func(Check)) {
	began := time.Now()
	var took []time.Duration
	for _, q := range trials {
		start := time.Now()
		if _, err := m.Search(ctx, []string{"graphiti_proxy_check"}, q, 1); err != nil {
			return
		}
		took = append(took, time.Since(start))
	}
	slices.Sort(took)
	s := graphiti.SearchTimes{Count: len(took), Half: took[len(took)/2].Milliseconds(), Most: took[len(took)-1].Milliseconds(), Timeout: timeout.Milliseconds()}
	report(Check{Name: "searches in time", Took: time.Since(began), OK: true, Detail: s.String(), Remedy: s.Late()})
}
