package graphiti

import (
	"context"
	"time"
)

// Memory is a backend, by its roles. A caller asks for the roles that it needs.
// All methods of a role are safe for concurrent use, obey the context's deadline and
// bound what they read. None may log what was said, or quote it in an error.
type Memory struct {
	Searcher
	Writer
	Lister
	Forgetter
	Connection

	// Weighing says that Search weighs its facts (Fact.Strength), and that earlier
	// questions count less than the question (Earlier).
	Weighing bool
}

// Earlier separates, in a query, the question from earlier ones behind it. These
// help to understand the question and weigh less.
const Earlier = "\n\n"

// Searcher finds facts.
type Searcher interface {
	// Search returns up to max facts of the groups that match the query, best
	// first. No match is not an error. Graphiti on Neo4j looks for the words of a
	// query in the last group only (getzep/graphiti#1249): to find all, call
	// Search once for each group.
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

	// Clock returns the latest time that the backend's clock is known to have
	// reached. The backend may hide a message with a later timestamp. Clock
	// returns zero if it hides none, or if its clock is not known yet.
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

// Forgetter deletes. It returns nil only after it has looked and found nothing
// left.
type Forgetter interface {
	// Forget removes a group and all that was learnt from it. To forget a group
	// that does not exist is no error.
	Forget(ctx context.Context, group string) error

	// ForgetEpisodes removes the episodes of a group for which meant returns
	// true, and the facts that were first learnt from them, as far as the backend
	// says which. It returns the names of the episodes that are gone.
	ForgetEpisodes(ctx context.Context, group string, meant func(*Episode) bool) ([]string, error)
}

// Connection is the connection to the backend.
type Connection interface {
	// Health reports whether the backend answers.
	Health(ctx context.Context) error

	// Close closes the connection, or the file.
	Close() error
}

// Ready reports whether the backend can search a group at once, without reading all
// of it first.
func (m *Memory) Ready(group string) bool {
	if r, ok := m.Searcher.(interface{ Ready(group string) bool }); ok {
		return r.Ready(group)
	}
	return true
}

// Weighs reports whether Search weighs its facts and the parts of a query.
func (m *Memory) Weighs() bool { return m.Weighing }

// KeepsNames reports whether the backend keeps names and summaries of what was spoken of
// when it has deleted single messages: only all of a group goes without a trace.
func (m *Memory) KeepsNames(ctx context.Context) bool {
	k, ok := m.Forgetter.(interface{ KeepsNames(context.Context) bool })
	return ok && k.KeepsNames(ctx)
}

// Entity is somebody or something that facts are about.
type Entity struct{ UUID, Name, Summary string }

// Entities returns up to max entities of a group that match a query; ok is false where the
// backend has no search for them.
func (m *Memory) Entities(ctx context.Context, group, query string, max int) (list []Entity, ok bool, err error) {
	e, ok := m.Searcher.(interface {
		Entities(ctx context.Context, group, query string, max int) ([]Entity, error)
	})
	if !ok {
		return nil, false, nil
	}
	list, err = e.Entities(ctx, group, query, max)
	return list, true, err
}

// Database returns the name of the database that the backend's listings look into, in
// lower case; empty if the backend does not say, or if its listings do not depend on it.
func (m *Memory) Database(ctx context.Context) string {
	if d, ok := m.Connection.(interface{ Database(context.Context) string }); ok {
		return d.Database(ctx)
	}
	return ""
}
