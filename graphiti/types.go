package graphiti

import (
	"context"
	"strings"
	"time"
)

// Fact is one thing that the memory knows, as a sentence.
type Fact struct {
	UUID           string // the backend's id; empty when it has none
	Name           string // Graphiti's relation name, such as OWNS; may be empty
	Text           string // the sentence; hostile until inject has escaped it
	Source, Target string // ids of what is related; may be empty

	Group string // the group it was found in; empty when the backend does not say

	// The zero time means unknown, or not set.
	CreatedAt time.Time
	ValidAt   time.Time // when it became true
	InvalidAt time.Time // when it stopped being true
	ExpiredAt time.Time // when the backend withdrew it

	// ReferenceTime is the time of the message that the fact was first read
	// from; zero where the backend does not say.
	ReferenceTime time.Time

	// Episode is the name of the message the fact was read from, where the
	// backend knows it (see EpisodeName). It lets a caller leave out what the
	// conversation itself still shows.
	Episode string

	// Dated says that the text itself tells how old it is.
	Dated bool

	// Entity says that this is what is known of somebody or something in all,
	// and not one statement.
	Entity bool
}

// RoleType is who a message is from, in Graphiti's words.
type RoleType string

// The role types that Graphiti accepts.
const (
	RoleUser      RoleType = "user"
	RoleAssistant RoleType = "assistant"
	RoleSystem    RoleType = "system"
)

// Message is one message to be remembered.
type Message struct {
	Name              string // stable and unique, see EpisodeName
	Role              string // the speaker's name; may be empty
	RoleType          RoleType
	Content           string
	Timestamp         time.Time // when it was said, never ahead of now
	SourceDescription string    // a small JSON object
}

// Episode is one message that the memory holds.
type Episode struct {
	UUID              string
	Name              string
	Group             string
	Content           string // Graphiti stores "role(role_type): content"
	SourceDescription string
	CreatedAt         time.Time
	ValidAt           time.Time
}

const turnPrefix = "graphiti-proxy.turn."

// EpisodeName is the stable name under which one side of a turn is kept.
func EpisodeName(turn string, role RoleType) string {
	return turnPrefix + turn + "." + string(role)
}

// TurnOf is the turn of which an episode is one side; ok is false for the name
// of another.
func TurnOf(name string) (turn string, ok bool) {
	rest, ok := strings.CutPrefix(name, turnPrefix)
	i := strings.LastIndexByte(rest, '.')
	if !ok || i < 0 {
		return "", false
	}
	return rest[:i], true
}

// Memory is what every backend can do. All calls are safe for concurrent use,
// honour the context's deadline, and bound what they read.
type Memory interface {
	// Search returns the facts of the groups that fit the query, best first,
	// max at most. No match is not an error.
	Search(ctx context.Context, groups []string, query string, max int) ([]Fact, error)

	// Write hands messages of one group over, in order. A nil error means the
	// backend accepted them; whether that proves they are kept, Durable says.
	Write(ctx context.Context, group string, messages []Message) error

	// Episodes returns the last n episodes of a group, oldest first.
	Episodes(ctx context.Context, group string, n int) ([]Episode, error)

	// Export calls f for every episode of a group, with its whole content. The
	// order is the backend's.
	Export(ctx context.Context, group string, f func(Episode) error) error

	// Forget removes a group and all that was learnt from it. Forgetting what
	// does not exist is not an error.
	Forget(ctx context.Context, group string) error

	// ForgetEpisodes removes the episodes of a group that are meant, and what
	// was first learnt from them as far as the backend tells, and returns the
	// names of those that are gone.
	ForgetEpisodes(ctx context.Context, group string, meant func(*Episode) bool) ([]string, error)

	// Health reports whether the backend answers.
	Health(ctx context.Context) error

	// Durable reports whether a Write that returned nil is already proof that
	// the messages are kept (the embedded store), or only that they were
	// queued somewhere (Graphiti's 202).
	Durable() bool

	// Apart reports whether the backend works each group off by itself: then
	// one group's progress says nothing of another's. It matters to those that
	// only queue.
	Apart() bool

	// Clock is a time that has come by the backend's clock, as late a one as is
	// known: it may hide what speaks of a later one. Zero where it does not, or
	// where its clock is not known yet.
	Clock() time.Time

	// Close releases what the backend holds.
	Close() error
}
