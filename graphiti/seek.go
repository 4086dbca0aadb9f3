package graphiti

import (
	"context"
	"slices"

	"github.com/tidwall/gjson"
)

// Sought selects episodes of a group by any of its fields.
type Sought struct {
	Session string   // session hash
	Message string   // MessageID of a side
	Names   []string // names of sides
	UUIDs   []string
}

// Means reports whether s selects an episode.
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

// Seek calls f for the selected episodes of a group, in the backend's order. Missing episodes
// are not an error. A backend without lookups lists the whole group.
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

// MaxFacts is the maximum number of facts per lookup.
const MaxFacts = 500

// Facts returns the existing ones of the first MaxFacts UUIDs. ok is false if the backend
// cannot look facts up.
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
