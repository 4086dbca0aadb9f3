package graphiti

import (
	"context"
	"time"
)

// Memory is a backend, divided into roles. Callers accept only the roles they need. All
// methods are safe for concurrent use, obey the context's deadline and limit their reads.
// They never log message texts or quote them in errors.
type Memory struct {
	Searcher
	Writer
	Lister // nil for Graphiti
	Forgetter
	Connection
	Arrivals // nil for an embedded memory

	// States reports whether a text may be a statement, rather than a question or a request.
	// Without a model of meaning, any text may be. It is nil if the backend has no such model.
	States func(ctx context.Context, text string) bool
}

// Earlier separates a query's question from the earlier questions after it. Those add context
// and weigh less.
const Earlier = "\n\n"

// Searcher searches for facts.
type Searcher interface {
	// Search returns up to max matching facts of the groups, best first. No match is not an
	// error. Graphiti on Neo4j matches words only in the last group
	// (getzep/graphiti#1249), so search each group separately to find all facts.
	Search(ctx context.Context, groups []string, query string, max int) ([]Fact, error)
}

// MaxSearch is the maximum number of facts of a search.
const MaxSearch = 400

// TrySearch tests whether a search works. Graphiti applies the limit of the newest search to all concurrent
// ones, so a test has the highest: a smaller one would cut recall's answers.
func TrySearch(ctx context.Context, s Searcher, group, query string) error {
	_, err := s.Search(ctx, []string{group}, query, MaxSearch)
	return err
}

// Writer stores messages.
type Writer interface {
	// Write sends messages of one group, in order, with their name, role, speaker, text, time and
	// source. A nil error means that the backend accepted them: Graphiti's 202 only means that
	// they are queued.
	Write(ctx context.Context, group string, messages []Row) error

	// Apart reports whether each group has its own queue, so that the progress of one group is
	// independent of others. It matters only for queueing backends.
	Apart() bool
}

// Arrivals lists the stored episodes of a backend that queues messages.
type Arrivals interface {
	// Episodes returns the last n episodes of a group, oldest first, before Row.Sides.
	Episodes(ctx context.Context, group string, n int) ([]Row, error)

	// Export calls f for every episode of a group, with its whole content, in the order of the listing.
	Export(ctx context.Context, group string, f func(Row) error) error

	// FactsOf returns the facts of an episode, including facts that it ended.
	FactsOf(ctx context.Context, group string, episode *Row) ([]Fact, error)
}

// Forgetter deletes. Its methods return nil only after verifying the deletion.
type Forgetter interface {
	// Forget deletes a group and all its facts. A missing group is not an error.
	Forget(ctx context.Context, group string) error

	// ForgetEpisodes deletes the episodes of a group that meant selects by their name and source,
	// and the facts first extracted from them, if the backend records that. Graphiti may keep names
	// and summaries of entities; only deleting the whole group removes those. It returns the names
	// of the deleted episodes.
	ForgetEpisodes(ctx context.Context, group string, meant func(*Row) bool) ([]string, error)
}

// Connection is the connection to the backend.
type Connection interface {
	// Health reports whether the backend answers.
	Health(ctx context.Context) error

	// Close closes the connection or file.
	Close() error
}

// Matches returns the best matching facts of a group, whatever their strength. A backend without
// a measure of its own returns its search results.
func (m *Memory) Matches(ctx context.Context, group, query string, max int) ([]Fact, error) {
	if f, ok := m.Searcher.(interface {
		Matches(ctx context.Context, group, query string, max int) ([]Fact, error)
	}); ok {
		return f.Matches(ctx, group, query, max)
	}
	return m.Search(ctx, []string{group}, query, max)
}

// Dates selects facts by the times at which they begin and end. A zero time selects all.
type Dates struct{ ValidAfter, ValidBefore, InvalidAfter time.Time }

// SearchDated is Search in one group for facts of some dates, or of all if the backend cannot select
// them.
func (m *Memory) SearchDated(ctx context.Context, group, query string, max int, d Dates) ([]Fact, error) {
	if s, ok := m.Searcher.(interface {
		SearchDated(ctx context.Context, group, query string, max int, d Dates) ([]Fact, error)
	}); ok {
		return s.SearchDated(ctx, group, query, max, d)
	}
	return m.Search(ctx, []string{group}, query, max)
}

// Facts returns the existing facts with UUIDs, or none if the backend cannot look facts up.
func (m *Memory) Facts(ctx context.Context, group string, uuids []string) ([]Fact, error) {
	k, ok := m.Searcher.(interface {
		Facts(ctx context.Context, group string, uuids []string) ([]Fact, error)
	})
	if !ok || len(uuids) == 0 {
		return nil, nil
	}
	return k.Facts(ctx, group, uuids)
}
