package graphiti

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// RemainsError says that a group was deleted and is not gone: a look after the
// deletion still shows something.
type RemainsError struct {
	Group    string
	Episodes int // that are listed
	Facts    int // that a search finds

	// Unreachable says that the service does not find what it shows, so that no
	// call of it can delete that. Graphiti does so on FalkorDB: it shows the
	// graph that is named after the group, and deletes in its default one.
	Unreachable bool
}

// Error holds no text of what remains.
func (e *RemainsError) Error() string {
	return fmt.Sprintf("the memory answered that it was deleted, and still shows %d episodes and %d facts", e.Episodes, e.Facts)
}

// orNil is nil where nothing remains.
func (e *RemainsError) orNil() error {
	if e.Episodes+e.Facts == 0 {
		return nil
	}
	return e
}

// remedy says what to do about it.
func (e *RemainsError) remedy() string {
	if e.Unreachable {
		return "this Graphiti cannot delete the group, as on FalkorDB, where its delete calls look into another graph: delete all of the group with redis-cli GRAPH.DELETE " +
			e.Group + " on FalkorDB, and run Graphiti on Neo4j to delete from here"
	}
	return "look at Graphiti's log for why it does not delete the group " + e.Group
}

// deleter is what a service can do about what it shows of a group. drop calls
// answer with a StatusError that means "not found" where there is nothing.
type deleter interface {
	Episodes(ctx context.Context, group string, n int) ([]Episode, error)
	Search(ctx context.Context, groups []string, query string, max int) ([]Fact, error)
	dropEpisode(ctx context.Context, uuid string) error
	dropFact(ctx context.Context, uuid string) error
}

const (
	lookEpisodes = 1000 // that a look lists
	lookFacts    = 100  // that a look searches for
	maxDrops     = 5000 // calls that delete one thing, in all
	maxSearched  = 20   // deleted episodes whose facts are searched for
	maxUnknown   = 3    // answers in a row that there is no such thing, until no more is tried
)

// broadQuery finds the facts of a group whatever they are about: Graphiti's
// indexes hold the group's id beside the text. Where one does not, the words
// find most.
func broadQuery(group string) string {
	return group + " user assistant person name called named likes prefers uses works lives wants needs says said about project agent system team"
}

// proveEmpty looks at a group after it was deleted, deletes one by one what it
// still shows, and looks again, until nothing is shown or nothing changes.
func proveEmpty(ctx context.Context, d deleter, group string) error {
	tried := make(map[string]bool)
	left := &RemainsError{Group: group}
	for drops := 0; ; {
		episodes, facts, err := lookAt(ctx, d, group)
		if err != nil {
			return fmt.Errorf("look whether the group is empty: %w", err)
		}
		left.Episodes, left.Facts = len(episodes), len(facts)
		if left.Episodes+left.Facts == 0 {
			return nil
		}
		calls, stuck := dropsFor(d, episodes, facts, tried)
		if stuck || len(calls) == 0 || drops+len(calls) > maxDrops {
			return left
		}
		drops += len(calls)
		if left.Unreachable, err = dropAll(ctx, calls); err != nil {
			return fmt.Errorf("%w: %w", left, err)
		}
	}
}

// lookAt is what a group shows: its episodes, and what a search finds.
func lookAt(ctx context.Context, d deleter, group string) (episodes []Episode, facts []Fact, err error) {
	if episodes, err = d.Episodes(ctx, group, lookEpisodes); err != nil {
		return nil, nil, err
	}
	facts, err = d.Search(ctx, []string{group}, broadQuery(group), lookFacts)
	return episodes, facts, err
}

// dropsFor are the calls that delete what a look shows. stuck says that
// something is shown whose deletion was tried before.
func dropsFor(d deleter, episodes []Episode, facts []Fact, tried map[string]bool) (calls []func(context.Context) error, stuck bool) {
	add := func(uuid string, drop func(context.Context, string) error) {
		stuck = stuck || tried[uuid]
		tried[uuid] = true
		calls = append(calls, func(ctx context.Context) error { return drop(ctx, uuid) })
	}
	for i := range facts { // before the episodes that lead to them
		if !facts[i].Entity { // which goes with its episodes
			add(facts[i].UUID, d.dropFact)
		}
	}
	for i := range episodes {
		add(episodes[i].UUID, d.dropEpisode)
	}
	return calls, stuck
}

// dropAll makes the calls. unreachable says that the service does not know the
// last things that it has just shown.
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

// notFound reports whether an error says that something is not there: in a
// status, or in the words of a tool.
func notFound(err error) bool {
	var s *StatusError
	return errors.As(err, &s) && (s.Code == http.StatusNotFound ||
		s.Code == http.StatusServiceUnavailable && strings.Contains(s.Detail, "not found"))
}
