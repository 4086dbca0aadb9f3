package cache

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
)

// Snapshots keeps a text by session. It is safe for concurrent use.
type Snapshots struct{ db *sqlite.DB }

// Load returns a session's; nil when it has none.
func (s *Snapshots) Load(ctx context.Context, session string) (body []byte, err error) {
	err = s.db.QueryRow(ctx, "SELECT body FROM snapshots WHERE session = ?", []any{session}, &body)
	if errors.Is(err, sql.ErrNoRows) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read snapshot: %w", err)
	}
	return body, nil
}

// Save replaces a session's, without waiting for the file.
func (s *Snapshots) Save(session string, body []byte, groups ...string) {
	s.db.Later(func(tx *sqlite.Tx) error {
		_, err := tx.Exec("INSERT OR REPLACE INTO snapshots (session, body, grps, born) VALUES (?, ?, ?, ?)",
			session, body, ","+strings.Join(groups, ",")+",", time.Now().Unix())
		return err
	})
}

// Forget removes those whose turns are kept in a group.
func (s *Snapshots) Forget(group string) error {
	err := s.db.Write(context.Background(), func(tx *sqlite.Tx) error {
		tx.Fold()
		_, err := tx.Exec("DELETE FROM snapshots WHERE instr(grps, ?) > 0", ","+group+",")
		return err
	})
	if err != nil {
		return fmt.Errorf("forget snapshots: %w", err)
	}
	return nil
}
