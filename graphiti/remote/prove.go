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
// return a StatusError that means "not found" when there is nothing to delete.
type Deleter interface {
	Episodes(ctx context.Context, group string, n int) ([]graphiti.Episode, error)
	Search(ctx context.Context, groups []string, query string, max int) ([]graphiti.Fact, error)
	DropEpisode(ctx context.Context, group, uuid string) error
	DropFact(ctx context.Context, group, uuid string) error
}

const (
	lookEpisodes  = 1000 // episodes that a look lists
	LookFacts     = 100  // facts that a look searches for
	maxDrops      = 5000 // calls that delete one thing, in all
	MaxSearched   = 20   // deleted episodes whose facts are searched for
	MaxQueryBytes = 2000 // bytes of such an episode in a query
	maxUnknown    = 3    // answers "not found" in a row, after which we give up
)

// ProveEmpty lists a group after it was deleted, deletes one by one what the service still
// shows, and lists again, until it shows nothing or nothing changes.
func ProveEmpty(ctx context.Context, d Deleter, group string) error {
	tried := make(map[string]bool)
	left := &graphiti.RemainsError{Group: group}
	for drops := 0; ; {
		episodes, facts, err := lookAt(ctx, d, group)
		if err != nil {
			return fmt.Errorf("look whether the group is empty: %w", err)
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

// lookAt returns what the service shows of a group: its episodes, and what a search finds.
func lookAt(ctx context.Context, d Deleter, group string) (episodes []graphiti.Episode, facts []graphiti.Fact, err error) {
	if episodes, err = d.Episodes(ctx, group, lookEpisodes); err != nil {
		return nil, nil, err
	}
	facts, err = d.Search(ctx, []string{group}, graphiti.BroadQuery(group), LookFacts)
	return episodes, facts, err
}

// dropsFor returns the calls that delete what lookAt has found. stuck says that something
// is still shown although its deletion was tried before.
func dropsFor(d Deleter, group string, episodes []graphiti.Episode, facts []graphiti.Fact, tried map[string]bool) (calls []func(context.Context) error, stuck bool) {
	add := func(uuid string, drop func(ctx context.Context, group, uuid string) error) {
		stuck = stuck || tried[uuid]
		tried[uuid] = true
		calls = append(calls, func(ctx context.Context) error { return drop(ctx, group, uuid) })
	}
	for i := range facts { // before the episodes that they come from
		add(facts[i].UUID, d.DropFact)
	}
	for i := range episodes {
		add(episodes[i].UUID, d.DropEpisode)
	}
	return calls, stuck
}

// dropAll makes the calls. unreachable says that the service did not find the last things
// although it has just shown them.
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

// notFound reports whether an error means "not found", as a status or in the words
// of a tool.
func notFound(err error) bool {
	var s *graphiti.StatusError
	return errors.As(err, &s) && (s.Code == http.StatusNotFound ||
		s.Code == http.StatusServiceUnavailable && strings.Contains(s.Detail, "not found"))
}

// Present returns err, or nil when it says that something is not there.
func Present(err error) error {
	if notFound(err) {
		return nil
	}
	return err
}
