package cache

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"
)

// Snapshots stores texts for the beginnings of conversations: one snapshot of each session,
// for clients that drop the history, and lists of card entries. It does not interpret the
// texts. It is safe for concurrent use.
type Snapshots struct {
	store *tables
	kind  *kind
}

// The retention of list entries, and of trials.
const (
	standingFor = 365 * 24 * time.Hour
	trialsFor   = 400 * 24 * time.Hour
)

// Load returns the snapshot of a session, or nil.
func (s *Snapshots) Load(ctx context.Context, session string) ([]byte, error) {
	var body []byte
	err := s.store.get(ctx, s.kind, [][]byte{[]byte(session)}, func(_ int, value []byte) error {
		body = append([]byte{}, value...)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read snapshot: %w", err)
	}
	return body, nil
}

// Save replaces the snapshot of a session, unless one of its scopes has a newer
// generation. The scopes are the groups that hold the session's turns, and the session
// itself. A snapshot keeps the scopes of the one that it replaces. Load finds it once
// Save has returned: each turn adds to the snapshot of the turn before.
func (s *Snapshots) Save(ctx context.Context, session string, body []byte, generation int64, scopes ...string) error {
	r := &record{kind: s.kind, key: []byte(session), value: bytes.Clone(body), generation: generation, scopes: scopes}
	if s.store.shared == nil && s.store.writeAsync(r) { // it shares a commit
		return nil
	}
	if err := s.store.write(ctx, r); err != nil {
		return fmt.Errorf("save snapshot: %w", err)
	}
	return nil
}

// Each calls f for each snapshot with all of the scopes, in the order of the sessions'
// keys.
func (s *Snapshots) Each(ctx context.Context, f func(session string, body []byte) error, scopes ...string) error {
	err := s.store.scoped(ctx, s.kind, scopes, func(session, body []byte) error {
		return f(string(session), bytes.Clone(body))
	})
	if err != nil {
		return fmt.Errorf("read snapshots: %w", err)
	}
	return nil
}

// Add adds an entry to a list, unless one of its scopes has a newer generation. A list
// holds its newest 64 entries, for a year.
func (s *Snapshots) Add(ctx context.Context, list string, entry []byte, generation int64, scopes ...string) error {
	// The key only needs to be unique.
	r := &record{kind: standingKind, list: list, key: fmt.Appendf(nil, "%016x", time.Now().UnixNano()), value: entry, generation: generation, scopes: scopes}
	if err := s.store.write(ctx, r); err != nil {
		return fmt.Errorf("store a card: %w", err)
	}
	return nil
}

// Entries calls f for the entries of lists, newest first in each.
func (s *Snapshots) Entries(ctx context.Context, f func(list string, entry []byte), lists ...string) error {
	type one struct {
		list  string
		entry []byte
	}
	var all []one
	err := s.store.list(ctx, standingKind, lists, func(list string, _, entry []byte) error {
		all = append(all, one{list, bytes.Clone(entry)})
		return nil
	})
	if err != nil {
		return fmt.Errorf("read cards: %w", err)
	}
	for _, e := range slices.Backward(all) {
		f(e.list, e.entry)
	}
	return nil
}

// Remove deletes the entries of lists for which meant returns true.
func (s *Snapshots) Remove(ctx context.Context, meant func(entry []byte) bool, lists ...string) error {
	err := s.store.remove(ctx, standingKind, lists, func(_, entry []byte) bool { return meant(entry) })
	if err != nil {
		return fmt.Errorf("delete a card: %w", err)
	}
	return nil
}

// Drop removes the snapshots with a scope. List entries stay.
func (s *Snapshots) Drop(ctx context.Context, scope string) error {
	return s.forget(ctx, scope, snapshotKind)
}

// Forget removes the snapshots and the list entries with a scope.
func (s *Snapshots) Forget(ctx context.Context, scope string) error {
	return s.forget(ctx, scope, snapshotKind, standingKind, endedKind)
}

func (s *Snapshots) forget(ctx context.Context, scope string, kinds ...*kind) error {
	for _, k := range kinds {
		if _, err := s.store.forget(ctx, k, scope); err != nil {
			return fmt.Errorf("forget snapshots: %w", err)
		}
	}
	return nil
}
