package graphiti

import (
	"context"
	"time"
)

// Heading describes a message without its text.
type Heading struct {
	Place int64    // ascending position in its group
	Name  uint64   // hash of its name
	Turn  uint64   // hash of its turn, or 0
	Talk  string   // hash of its session, or ""
	Role  RoleType // role of its speaker
	Said  time.Time
}

// Outliner is a Lister that can list messages without reading them.
type Outliner interface {
	// Outline calls f for every message of a group, in the order of places.
	Outline(ctx context.Context, group string, f func(*Heading)) error

	// EpisodesAt returns the existing episodes at the given places of a group, in the order of
	// places.
	EpisodesAt(ctx context.Context, group string, places []int64) ([]Episode, error)

	// Latest calls f for every non-empty group, with the time of its last message.
	Latest(ctx context.Context, f func(group string, said time.Time)) error
}

// Outliner returns the backend's Outliner, if it has one.
func (m *Memory) Outliner() (o Outliner, ok bool) {
	o, ok = m.Lister.(Outliner)
	return o, ok
}
