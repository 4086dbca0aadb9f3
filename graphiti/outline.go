package graphiti

import (
	"context"
	"time"
)

// Heading is what is known of a message without its text.
type Heading struct {
	Place int64    // in its group: that of each earlier one is lower
	Name  uint64   // stands for its name, in all groups of a memory
	Turn  uint64   // stands for its turn; 0: it is not a side of one
	Talk  string   // hash of the conversation that it was said in; empty: not known
	Role  RoleType // of who said it
	Said  time.Time
}

// Outliner is a Lister that knows which messages it holds without reading them.
type Outliner interface {
	// Outline calls f for every message of a group, in the order of their places.
	Outline(ctx context.Context, group string, f func(*Heading)) error

	// EpisodesAt returns the episodes at some places of a group, in the order of their
	// places. It leaves out what is not there any more.
	EpisodesAt(ctx context.Context, group string, places []int64) ([]Episode, error)

	// Latest calls f for every group that holds something, with when the message was said
	// that it got last.
	Latest(ctx context.Context, f func(group string, said time.Time)) error
}

// Outliner returns the backend as one that knows what it holds, if it does.
func (m *Memory) Outliner() (o Outliner, ok bool) {
	o, ok = m.Lister.(Outliner)
	return o, ok
}
