package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Deleter lists and deletes the content of a group in a service. DropEpisode
// returns a StatusError that means "not found" if there is nothing to delete.
type Deleter interface {
	Episodes(ctx context.Context, group string, n int) ([]graphiti.Row, error)
	Search(ctx context.Context, groups []string, query string, max int) ([]graphiti.Fact, error)
	DropEpisode(ctx context.Context, group, uuid string) error
}

const (
	lookEpisodes  = 1000 // episodes to list in a group
	LookFacts     = 100  // facts to search for in a group
	MaxSearched   = 20   // deleted episodes to search for remaining facts
	MaxQueryBytes = 2000 // bytes of such an episode in a query
)

// ProveEmpty checks that a deleted group has no episodes, and that a search finds no facts in it.
func ProveEmpty(ctx context.Context, d Deleter, group string) error {
	episodes, err := d.Episodes(ctx, group, lookEpisodes)
	if err != nil {
		return fmt.Errorf("check for an empty group: %w", err)
	}
	facts, err := d.Search(ctx, []string{group}, graphiti.BroadQuery(group), LookFacts)
	if err != nil {
		return fmt.Errorf("check for an empty group: %w", err)
	}
	return (&graphiti.RemainsError{Group: group, Episodes: len(episodes), Facts: len(facts)}).OrNil()
}

// ForgetPart deletes episodes of a group, each after the facts that dropFacts deletes, and
// returns the names of the deleted ones. verify counts the episodes and facts that remain.
func ForgetPart(ctx context.Context, d Deleter, group string, list []graphiti.Row, dropFacts func(*graphiti.Row) error, verify func(left *graphiti.RemainsError) error) (names []string, err error) {
	if len(list) == 0 {
		return nil, nil
	}
	left := &graphiti.RemainsError{Group: group, Part: true}
	for i := range list {
		if err := dropFacts(&list[i]); err != nil {
			return names, fmt.Errorf("forget fact: %w", err)
		}
		if err := Present(d.DropEpisode(ctx, group, list[i].Key)); err != nil {
			return names, fmt.Errorf("forget episode: %w", err)
		}
		names = append(names, list[i].Name)
	}
	if err := verify(left); err != nil {
		return names, fmt.Errorf("verify the deletion: %w", err)
	}
	return names, left.OrNil()
}

// notFound reports whether an error means "not found", as a status or in the words
// of a tool.
func notFound(err error) bool {
	var s *graphiti.StatusError
	return errors.As(err, &s) && (s.Code == http.StatusNotFound ||
		s.Code == http.StatusServiceUnavailable && strings.Contains(s.Detail, "not found"))
}

// Present returns err, or nil if err means "not found".
func Present(err error) error {
	if notFound(err) {
		return nil
	}
	return err
}
