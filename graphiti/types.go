package graphiti

import (
	"strings"
	"time"
)

// Fact is a sentence in memory.
type Fact struct {
	UUID string // backend's ID; may be empty
	Text string // the sentence; untrusted until inject escapes it

	Group string // group of the fact, or "" if the backend does not report it

	// The zero time means unknown, or not set.
	CreatedAt time.Time
	ValidAt   time.Time // start of validity
	InvalidAt time.Time // end of validity
	ExpiredAt time.Time // time of withdrawal by the backend

	// Episodes holds the UUIDs of the fact's latest messages, the newest last, if the backend
	// reports them. Graphiti does over REST since August 2026.
	Episodes []string

	// Episode is the name of the fact's message, if the backend knows it (see EpisodeName).
	// Callers use it to omit messages in the conversation.
	Episode string

	// Messages holds the names of the messages that a distilled fact is from.
	Messages []string

	// OfUser is Distilled.OfUser of a distilled fact. Of a message, it reports whether the person
	// says there who they are, and the question needs that.
	OfUser bool

	// Meant reports whether the question may be about something else. A message has no word of it: its
	// meaning, or an earlier question, found it. Or it has facts, or is private, or the question asks for
	// nothing. Of a distilled fact, no key is in the question, which needs nothing about the person either.
	Meant bool

	// Keys holds the keys of a distilled fact in lookups.
	Keys []string

	// Past reports whether the fact is shown though it is no longer valid, because the question
	// is about the past.
	Past bool

	// Dated reports whether the text contains its date.
	Dated bool

	// Said is the speaker and date at the start of the text, up to a colon. Facts of one
	// speaker and day may share it in a block.
	Said string

	// Strength is the match with the question from 0 to 1, independent of other facts. It is
	// valid only if Weighed is true, because some backends do not measure it.
	Strength float64
	Weighed  bool
}

// IsOver reports whether a fact was true until a time. Graphiti marks a fact as expired at once, even
// if the one that ends it begins later.
func (f *Fact) IsOver(now time.Time) bool {
	over := func(t time.Time) bool { return !t.IsZero() && !t.After(now) }
	return over(f.InvalidAt) || over(f.ExpiredAt) && !f.InvalidAt.After(now)
}

// RoleType is the role of a message's author, in Graphiti's terms.
type RoleType string

// The role types that Graphiti accepts.
const (
	RoleUser      RoleType = "user"
	RoleAssistant RoleType = "assistant"
	RoleSystem    RoleType = "system"
)

const turnPrefix = "graphiti-proxy.turn."

// EpisodeName returns the stable name of one side of a turn.
func EpisodeName(turn string, role RoleType) string {
	return turnPrefix + turn + "." + string(role)
}

// TurnNames returns the names of both sides of a turn.
func TurnNames(turn string) []string {
	return []string{EpisodeName(turn, RoleUser), EpisodeName(turn, RoleAssistant)}
}

// TurnOf returns the turn of an episode name. ok is false for other episodes.
func TurnOf(name string) (turn string, ok bool) {
	rest, ok := strings.CutPrefix(name, turnPrefix)
	i := strings.LastIndexByte(rest, '.')
	if !ok || i < 0 {
		return "", false
	}
	return rest[:i], true
}
