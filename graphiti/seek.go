package graphiti

import (
	"context"
	"slices"

	"github.com/tidwall/gjson"
)

// Sought says which episodes of a group are looked for: those that one of the fields
// means.
type Sought struct {
	Session string   // the hash of the conversation that they are of
	Message string   // the MessageID of one of their sides
	Names   []string // of one of their sides
	UUIDs   []string
}

// Means reports whether an episode is among those that are looked for.
func (s *Sought) Means(e *Episode) bool {
	if s.Session != "" && gjson.Get(e.SourceDescription, "session").Str == s.Session || slices.Contains(s.UUIDs, e.UUID) {
		return true
	}
	if s.Message == "" && len(s.Names) == 0 {
		return false
	}
	return slices.ContainsFunc(e.Sides(), func(side Side) bool {
		return s.Message != "" && MessageID(side.Name) == s.Message || slices.Contains(s.Names, side.Name)
	})
}

// Seek calls f for the episodes of a group that are looked for, in the backend's order.
// One that is not there any more is no error. A backend that cannot look them up lists all
// of the group.
func (m *Memory) Seek(ctx context.Context, group string, s Sought, f func(Episode) error) error {
	type seeker interface {
		Seek(ctx context.Context, group string, s Sought, f func(Episode) error) error
	}
	if l, ok := m.Lister.(seeker); ok {
		return l.Seek(ctx, group, s, f)
	}
	return m.Export(ctx, group, func(e Episode) error {
		if s.Means(&e) {
			return f(e)
		}
		return nil
	})
}

// MaxFacts is how many facts are looked up at most.
const MaxFacts = 500

// Facts returns those of some facts of a group that are still there, at most MaxFacts. ok
// is false if the backend cannot look facts up.
func (m *Memory) Facts(ctx context.Context, group string, uuids []string) (facts []Fact, ok bool, err error) {
	type knower interface {
		Facts(ctx context.Context, group string, uuids []string) (facts []Fact, ok bool, err error)
	}
	k, ok := m.Searcher.(knower)
	if !ok || len(uuids) == 0 {
		return nil, ok, nil
	}
	return k.Facts(ctx, group, uuids[:min(len(uuids), MaxFacts)])
}
