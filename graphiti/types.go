package graphiti

import (
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

	// Episodes are the UUIDs of the newest messages that say the fact, the last one
	// said last, where the backend names them so: Graphiti does, since August 2026
	// over REST.
	Episodes []string

	// Episode is the name of the message the fact was read from, where the
	// backend knows it (see EpisodeName). It lets a caller leave out what the
	// conversation itself still shows.
	Episode string

	// Dated says that the text says how old it is.
	Dated bool

	// Said is the beginning of the text, up to a colon, if that names who said it
	// and when. Facts of one person and one day may share it in a block.
	Said string

	// Strength is how well the fact answers the question, from 0 to 1,
	// independent of the other facts. It counts only if Weighed is true: not
	// every backend measures it.
	Strength float64
	Weighed  bool
}

// RoleType says who a message is from, in Graphiti's words.
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

// MessageID returns a short id of the message with that name, for people to name it by.
// Names may be long, and may have been written by others.
func MessageID(name string) string { return shortHash("message", name) }

const turnPrefix = "graphiti-proxy.turn."

// EpisodeName returns the stable name of one side of a turn.
func EpisodeName(turn string, role RoleType) string {
	return turnPrefix + turn + "." + string(role)
}

// TurnOf returns the turn in the name of an episode. ok is false for an episode that
// is not a side of a turn.
func TurnOf(name string) (turn string, ok bool) {
	rest, ok := strings.CutPrefix(name, turnPrefix)
	i := strings.LastIndexByte(rest, '.')
	if !ok || i < 0 {
		return "", false
	}
	return rest[:i], true
}
