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

// Save replaces a session's, without waiting for the store, unless it or one of
// the groups was forgotten since what it takes in was said.
func (s *Snapshots) Save(session string, body []byte, since time.Time, groups ...string) {
	s.store.saveSnapshotLater(session, body, since, groups)
}

// Forget removes those whose turns are kept in a group.
func (s *Snapshots) Forget(group string) error {
	if err := s.store.forgetSnapshots(group); err != nil {
		return fmt.Errorf("forget snapshots: %w", err)
	}
	return nil
}
