package cache

import (
	"context"
	"fmt"
	"time"
)

// Snapshots keeps a text by session. It is safe for concurrent use.
type Snapshots struct{ store store }

// Load returns a session's; nil when it has none.
func (s *Snapshots) Load(ctx context.Context, session string) ([]byte, error) {
	body, err := s.store.readSnapshot(ctx, session)
	if err != nil {
		return nil, fmt.Errorf("read snapshot: %w", err)
	}
	return body, nil
}

// Save replaces a session's, without waiting for the store, unless one of the
// marks was forgotten since what it takes in was said: the groups in which its
// turns are kept, and those of the session itself.
func (s *Snapshots) Save(session string, body []byte, since time.Time, marks ...string) {
	s.store.saveSnapshotLater(session, body, since, marks)
}

// Each calls f for those that have all of some marks.
func (s *Snapshots) Each(ctx context.Context, f func(body []byte) error, marks ...string) error {
	if err := s.store.eachSnapshot(ctx, marks, f); err != nil {
		return fmt.Errorf("read snapshots: %w", err)
	}
	return nil
}

// Forget removes those that have a mark.
func (s *Snapshots) Forget(mark string) error {
	if err := s.store.forgetSnapshots(mark); err != nil {
		return fmt.Errorf("forget snapshots: %w", err)
	}
	return nil
}
