package cache

import (
	"context"
	"slices"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Search returns a search without the messages that their person has ended.
func (e *Ended) Search(in graphiti.Searcher) graphiti.Searcher { return valid{in, e} }

// valid searches a memory without ended messages.
type valid struct {
	graphiti.Searcher
	ended *Ended
}

func (v valid) Search(ctx context.Context, groups []string, query string, most int) ([]graphiti.Fact, error) {
	found, err := v.Searcher.Search(ctx, groups, query, most)
	return v.ended.remove(ctx, found, err, groups...)
}

// remove removes ended messages, facts from ended messages only, and distilled facts with an
// ended message. If the state cannot be read, it returns no facts: one of them may have been
// ended.
func (e *Ended) remove(ctx context.Context, found []graphiti.Fact, err error, groups ...string) ([]graphiti.Fact, error) {
	if err != nil || len(found) == 0 {
		return found, err
	}
	since, err := e.In(ctx, groups...)
	switch {
	case err != nil:
		return nil, err
	case len(since) == 0:
		return found, nil
	}
	return slices.DeleteFunc(slices.Clone(found), func(f graphiti.Fact) bool {
		_, message := since[f.Episode]
		_, fact := since[f.UUID]
		return message || fact || slices.ContainsFunc(f.Messages, func(m string) bool { _, distilled := since[m]; return distilled })
	}), nil
}
