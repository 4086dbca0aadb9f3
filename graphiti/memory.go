package graphiti

import (
	"context"
	"time"
)

// Memory is one backend in its roles. Callers name the roles that they need. All calls of every role are safe for concurrent use, honour
// the context's deadline and bound what they read. None may log, or quote in an
// error, what was said.
type Memory struct {
	Searcher
	Writer
	Lister
	Forgetter
	Connection
}

// Earlier stands in a query between what is asked and what was asked before it,
// which helps to understand it and weighs less.
const Earlier = "\n\n"

// Searcher finds facts.
type Searcher interface {
	// Search returns the facts of the groups that fit the query, best first,
	// max at most. No match is not an error. Graphiti on Neo4j looks for the words
	// of a query in the last group only (getzep/graphiti#1249): what is shown to
	// somebody is searched group by group.
	Search(ctx context.Context, groups []string, query string, max int) ([]Fact, error)
}

// Writer takes messages.
type Writer interface {
	// Write hands messages of one group over, in order. A nil error means the
	// backend accepted them: Graphiti's 202 says only that they were queued.
	Write(ctx context.Context, group string, messages []Message) error

	// Apart reports whether the backend has a queue for each group: then one
	// group's progress says nothing of another's. It matters to those that only
	// queue.
	Apart() bool

	// Clock is a time that has come by the backend's clock, as late a one as is
	// known: it may hide what speaks of a later one. Zero where it does not, or
	// where its clock is not known yet.
	Clock() time.Time
}

// Lister shows what was written.
type Lister interface {
	// Episodes returns the last n episodes of a group, oldest first.
	Episodes(ctx context.Context, group string, n int) ([]Episode, error)

	// Export calls f for every episode of a group, with its whole content. The
	// order is the backend's.
	Export(ctx context.Context, group string, f func(Episode) error) error
}

// Forgetter deletes, and returns nil only when a look shows that nothing is
// left.
type Forgetter interface {
	// Forget removes a group and all that was learnt from it. Forgetting what
	// does not exist is not an error.
	Forget(ctx context.Context, group string) error

	// ForgetEpisodes removes the episodes of a group that are meant, and what
	// was first learnt from them as far as the backend tells, and returns the
	// names of those that are gone.
	ForgetEpisodes(ctx context.Context, group string, meant func(*Episode) bool) ([]string, error)
}

// Connection is the way to the backend.
type Connection interface {
	// Health reports whether the backend answers.
	Health(ctx context.Context) error

	// Close releases what the backend holds.
	Close() error
}

// Ready reports whether the backend can search a group without reading all of it
// first.
func (m *Memory) Ready(group string) bool {
	if r, ok := m.Searcher.(interface{ Ready(group string) bool }); ok {
		return r.Ready(group)
	}
	return true
}

// Database is what the backend says that it keeps things in, in lower case;
// empty where it does not say.
func (m *Memory) Database(ctx context.Context) string {
	if d, ok := m.Connection.(interface{ Database(context.Context) string }); ok {
		return d.Database(ctx)
	}
	return ""
}
