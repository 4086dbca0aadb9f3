package main

import (
	"context"
	"slices"

	"github.com/graphiti-proxy/graphiti-proxy/cache"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/inject"
)

// valid searches a memory without the messages that their person has ended.
type valid struct {
	inject.Searcher
	ended *cache.Ended
}

func (v valid) Search(ctx context.Context, groups []string, query string, most int) ([]graphiti.Fact, error) {
	found, err := v.Searcher.Search(ctx, groups, query, most)
	return withoutEnded(ctx, v.ended, found, err, groups...)
}

// validRecent is valid for messages that a remote memory may not have processed yet.
type validRecent struct {
	recent inject.Recent
	ended  *cache.Ended
}

func (v validRecent) Recent(ctx context.Context, group, query string, most int) ([]graphiti.Fact, error) {
	found, err := v.recent.Recent(ctx, group, query, most)
	return withoutEnded(ctx, v.ended, found, err, group)
}

// withoutEnded removes ended messages, facts from ended messages only, and distilled facts
// with an ended message. If the state
// cannot be read, it returns no facts: one of them may have been ended.
func withoutEnded(ctx context.Context, ended *cache.Ended, found []graphiti.Fact, err error, groups ...string) ([]graphiti.Fact, error) {
	if err != nil || len(found) == 0 {
		return found, err
	}
	since, err := ended.In(ctx, groups...)
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
