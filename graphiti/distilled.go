package graphiti

import (
	"context"
	"strings"
	"time"
)

// PulledPrefix begins the names of facts that Graphiti extracted; their UUID follows.
const PulledPrefix = "graphiti."

// Distilled is a fact that a model distilled from a conversation.
type Distilled struct {
	Name    string   `json:"-"`    // stable and unique in its group
	Text    string   `json:"-"`    // one sentence
	Role    RoleType `json:"role"` // user if the person said or accepted it, otherwise assistant
	Kind    string   `json:"kind"` // such as decision or host
	About   string   `json:"about"`
	Keys    []string `json:"keys"`
	Sources []string `json:"sources"` // names of the messages that it was distilled from
	Source  string   `json:"-"`       // source description of the last one
	Episode string   `json:"-"`       // UUID of the episode in Graphiti that has them, of a fact to pull

	Since   time.Time `json:"since"`
	Until   time.Time `json:"until,omitzero"`
	Made    time.Time `json:"made"`
	Owner   string    `json:"-"`
	EndedBy string    `json:"ended_by,omitempty"` // name of the fact that replaced it

	Replaces []string `json:"-"` // names of the facts that a new fact ends
}

// AboutUser is the subject of facts about the person, in every language.
const AboutUser = "the user"

// OfUser reports whether a fact matters in all of the person's projects: it states who the
// person is, their home, or a preference of any subject. A rule does not: it has to be
// confirmed before it applies outside of its place.
func (f *Distilled) OfUser() bool {
	switch f.Kind {
	case "preference":
		return f.Role == RoleUser
	case "identity", "place":
		return f.Role == RoleUser && strings.EqualFold(f.About, AboutUser)
	}
	return false
}

// Batch is a part of one conversation for a model to distil.
type Batch struct {
	Group    string
	Session  string // names its place in the store's queue
	Provider string // id of the provider that had the messages, or ""
	Project  string // name of the project, or ""
	Owner    string // the person, or no person's value if the conversation has several
	Tries    int    // failed attempts
	Messages []Undistilled
	Known    []Distilled // valid facts of the group
}

// Undistilled is a message of a Batch.
type Undistilled struct {
	ID   int64
	Name string
	Role RoleType
	Text string
	Said time.Time
}

// Stored is the extent of a memory.
type Stored struct {
	Messages int64 // all messages
	Waiting  int64 // of them, messages that wait for the model that distils facts
	Facts    int64 // valid facts
	Ended    int64 // facts that are not valid anymore
	Bytes    int64 // on disk
	Free     int64 // of them, bytes that deletions have freed for later messages

	Arms map[string]int // conversations of proof mode, by arm
}

// Extent is the number of messages of a memory, the bytes of their texts, and the
// times of the earliest and the latest one.
type Extent struct {
	Messages, Bytes int64
	First, Last     time.Time
}

// Reaches reports whether an extent has reached a limit. 0 means no limit.
func (e Extent) Reaches(limit Extent) bool {
	return limit.Messages > 0 && e.Messages >= limit.Messages || limit.Bytes > 0 && e.Bytes >= limit.Bytes
}

// Spent counts calls to the model that distils facts, and their results.
type Spent struct {
	Calls   int `json:"calls"`
	Failed  int `json:"failed"`
	Tokens  int `json:"tokens"`
	Facts   int `json:"facts"`
	Refused int `json:"refused"` // facts that the proxy did not accept
}

// Add adds the counts of o.
func (s *Spent) Add(o Spent) {
	s.Calls, s.Failed, s.Tokens = s.Calls+o.Calls, s.Failed+o.Failed, s.Tokens+o.Tokens
	s.Facts, s.Refused = s.Facts+o.Facts, s.Refused+o.Refused
}

// Distiller stores distilled facts.
type Distiller interface {
	// Distilled calls f for every distilled fact of a group, the oldest first.
	Distilled(ctx context.Context, group string, f func(*Distilled) error) error

	// RestoreDistilled stores facts of an export, after their messages. It skips facts that
	// exist or lack a message, and returns the number of stored ones.
	RestoreDistilled(ctx context.Context, group string, facts []Distilled) (int, error)

	// EndDistilled ends the facts from some messages at a time, and removes the messages from
	// the queue for a model. The zero time makes the facts valid again.
	EndDistilled(ctx context.Context, group string, names []string, at time.Time) error

	// QueueDistilled queues messages of conversations for a model that have not been distilled.
	QueueDistilled(ctx context.Context, group string, names []string) error
}

// Distiller returns the backend's Distiller, if it has one.
func (m *Memory) Distiller() (d Distiller, ok bool) {
	d, ok = m.Lister.(Distiller)
	return d, ok
}
