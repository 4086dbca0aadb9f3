package mcp

import (
	"context"
	"slices"
	"sync"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/remote"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/words"
)

const (
	nodesOfOne = 50   // entities to search for with the text of a deleted episode
	wordsOfOne = 1000 // words of an episode or a summary to compare
)

// summaries holds, by group, the deleted episodes that a summary may still quote. They
// end with the process; its caller keeps that a proof is missing.
type summaries struct{ sync.Map }

// quoted is a deleted episode.
type quoted struct {
	text   string
	own    []string        // words that no remaining episode of the group has
	before map[string]bool // summaries with such words before the deletion; nil if unknown
}

func (s *summaries) of(group string) []quoted {
	list, _ := s.Load(group)
	quotes, _ := list.([]quoted)
	return quotes
}

func (s *summaries) set(group string, list []quoted) {
	if len(list) == 0 {
		s.Delete(group)
		return
	}
	s.Store(group, list)
}

// noteSummaries records, before episodes are deleted, which summaries hold words that only
// these episodes have. A deletion that ends in the middle leaves the record.
func (m *Client) noteSummaries(ctx context.Context, group string, going []graphiti.Row, meant func(*graphiti.Row) bool) error {
	if len(going) == 0 {
		return nil
	}
	all, err := m.all(ctx, group)
	if err != nil {
		return err
	}
	stays := make(map[string]bool)
	for i := range all {
		if !meant(&all[i]) {
			for _, w := range words.Of(all[i].Text, wordsOfOne) {
				stays[w] = true
			}
		}
	}
	list := slices.Clone(m.summaries.of(group))
	for i := range going[:min(len(going), remote.MaxSearched)] {
		q := quoted{text: graphiti.Truncate(going[i].Text, remote.MaxQueryBytes)}
		q.own = slices.DeleteFunc(words.Of(going[i].Text, wordsOfOne), func(w string) bool { return stays[w] })
		if found, err := m.quotes(ctx, group, &q); err == nil {
			q.before = found
		}
		list = append(list, q)
	}
	m.summaries.set(group, list)
	return nil
}

// lookAtSummaries drops the deleted episodes that no summary quotes any more. A summary that
// the server has rewritten comes from the remaining episodes.
func (m *Client) lookAtSummaries(ctx context.Context, group string) {
	list := slices.Clone(m.summaries.of(group))
	m.summaries.set(group, slices.DeleteFunc(list, func(q quoted) bool {
		found, err := m.quotes(ctx, group, &q)
		for summary := range found {
			if q.before == nil || q.before[summary] {
				return false
			}
		}
		return err == nil
	}))
}

// quotes returns the summaries that hold words of only this episode.
func (m *Client) quotes(ctx context.Context, group string, q *quoted) (map[string]bool, error) {
	list, err := m.Entities(ctx, group, q.text, nodesOfOne)
	found := make(map[string]bool)
	for i := range list {
		has := func(w string) bool { return slices.Contains(q.own, w) }
		if slices.ContainsFunc(words.Of(list[i].Summary, wordsOfOne), has) {
			found[list[i].Summary] = true
		}
	}
	return found, err
}
