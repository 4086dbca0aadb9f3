package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Deleter lists and deletes the content of a group in a service. DropEpisode and DropFact
// return a StatusError that means "not found" if there is nothing to delete.
type Deleter interface {
	Episodes(ctx context.Context, group string, n int) ([]graphiti.Row, error)
	Search(ctx context.Context, groups []string, query string, max int) ([]graphiti.Fact, error)
	DropEpisode(ctx context.Context, group, uuid string) error
	DropFact(ctx context.Context, group, uuid string) error
}

const (
	lookEpisodes  = 1000 // episodes to list in a group
	LookFacts     = 100  // facts to search for in a group
	maxDrops      = 5000 // deletions in all
	MaxSearched   = 20   // deleted episodes to search for remaining facts
	MaxQueryBytes = 2000 // bytes of such an episode in a query
	maxUnknown    = 3    // answers "not found" in a row before giving up
)

// ProveEmpty lists a deleted group, deletes the remaining items one by one, and lists it
// again, until it is empty or nothing changes.
func ProveEmpty(ctx context.Context, d Deleter, group string) error {
	tried := make(map[string]bool)
	left := &graphiti.RemainsError{Group: group}
	for drops := 0; ; {
		episodes, facts, err := lookAt(ctx, d, group)
		if err != nil {
			return fmt.Errorf("check for an empty group: %w", err)
		}
		left.Episodes, left.Facts = len(episodes), len(facts)
		if left.Episodes+left.Facts == 0 {
			return nil
		}
		calls, stuck := dropsFor(d, group, episodes, facts, tried)
		if stuck || len(calls) == 0 || drops+len(calls) > maxDrops {
			return left
		}
		drops += len(calls)
		if left.Unreachable, err = dropAll(ctx, calls); err != nil {
			return fmt.Errorf("%w: %w", left, err)
		}
	}
}

// lookAt returns the episodes of a group, and the facts that a search finds in it.
func lookAt(ctx context.Context, d Deleter, group string) (episodes []graphiti.Row, facts []graphiti.Fact, err error) {
	if episodes, err = d.Episodes(ctx, group, lookEpisodes); err != nil {
		return nil, nil, err
	}
	facts, err = d.Search(ctx, []string{group}, graphiti.BroadQuery(group), LookFacts)
	return episodes, facts, err
}

// dropsFor returns the calls that delete the results of lookAt. stuck reports whether one
// of them remained after an earlier deletion.
func dropsFor(d Deleter, group string, episodes []graphiti.Row, facts []graphiti.Fact, tried map[string]bool) (calls []func(context.Context) error, stuck bool) {
	add := func(uuid string, drop func(ctx context.Context, group, uuid string) error) {
		stuck = stuck || tried[uuid]
		tried[uuid] = true
		calls = append(calls, func(ctx context.Context) error { return drop(ctx, group, uuid) })
	}
	for i := range facts { // before the episodes that they come from
		add(facts[i].UUID, d.DropFact)
	}
	for i := range episodes {
		add(episodes[i].Key, d.DropEpisode)
	}
	return calls, stuck
}

// dropAll makes the calls. unreachable reports whether the service did not find the last
// items, although it has just listed them.
func dropAll(ctx context.Context, calls []func(context.Context) error) (unreachable bool, err error) {
	unknown := 0
	for _, call := range calls {
		switch err := call(ctx); {
		case err == nil:
			unknown = 0
		case notFound(err):
			if unknown++; unknown == maxUnknown {
				return true, nil
			}
		default:
			return false, err
		}
	}
	return unknown > 0, nil
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
		err := d.DropEpisode(ctx, group, list[i].Key)
		if Present(err) != nil {
			return names, fmt.Errorf("forget episode: %w", err)
		}
		left.Unreachable = left.Unreachable || err != nil
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
