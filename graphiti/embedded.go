package graphiti

import (
	"context"
	_ "embed"
	"fmt"
	"strconv"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
)

//go:embed schema.sql
var schema string

// Embedded is a memory in a file of its own: what was said, found again by
// its words. It needs no other process and no model.
type Embedded struct{ db *sqlite.DB }

var _ Memory = (*Embedded)(nil)

// OpenEmbedded opens the store at path, creating it where there is none.
func OpenEmbedded(path string) (*Embedded, error) {
	db, err := sqlite.Open(path, sqlite.Options{Migrations: []string{schema}, Sync: sqlite.SyncFull})
	if err != nil {
		return nil, fmt.Errorf("open memory: %w", err)
	}
	return &Embedded{db}, nil
}

// Write implements Memory. A message whose name the group has already is not
// written again.
func (e *Embedded) Write(ctx context.Context, group string, messages []Message) error {
	return e.db.Write(ctx, func(tx *sqlite.Tx) error {
		for _, m := range messages {
			if _, err := tx.Exec(`INSERT INTO messages (grp, name, role, speaker, content, source, said, kept)
				VALUES (?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (grp, name) DO NOTHING`,
				group, m.Name, string(m.RoleType), m.Role, m.Content, m.SourceDescription,
				m.Timestamp.UnixMilli(), time.Now().UnixMilli()); err != nil {
				return err
			}
		}
		return nil
	})
}

// Episodes implements Memory.
func (e *Embedded) Episodes(ctx context.Context, group string, n int) ([]Episode, error) {
	rows, err := e.db.Read().QueryContext(ctx, `SELECT * FROM
		(SELECT id, name, speaker, role, content, source, kept, said FROM messages WHERE grp = ? ORDER BY id DESC LIMIT ?) ORDER BY id`, group, n)
	if err != nil {
		return nil, fmt.Errorf("list episodes: %w", err)
	}
	defer rows.Close()
	var out []Episode
	for rows.Next() {
		var id, kept, said int64
		var speaker, role string
		ep := Episode{Group: group}
		if err := rows.Scan(&id, &ep.Name, &speaker, &role, &ep.Content, &ep.SourceDescription, &kept, &said); err != nil {
			return nil, fmt.Errorf("list episodes: %w", err)
		}
		ep.UUID = strconv.FormatInt(id, 10)
		ep.Content = speaker + "(" + role + "): " + ep.Content
		ep.CreatedAt, ep.ValidAt = time.UnixMilli(kept), time.UnixMilli(said)
		out = append(out, ep)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("list episodes: %w", err)
	}
	return out, nil
}

// Forget implements Memory. What is deleted is overwritten in the file.
func (e *Embedded) Forget(ctx context.Context, group string) error {
	return e.db.Write(ctx, func(tx *sqlite.Tx) error {
		_, err := tx.Exec("DELETE FROM messages WHERE grp = ?", group)
		return err
	})
}

// Health implements Memory.
func (e *Embedded) Health(ctx context.Context) error {
	var n int
	if err := e.db.Read().QueryRowContext(ctx, "SELECT count(*) FROM (SELECT 1 FROM messages LIMIT 1)").Scan(&n); err != nil {
		return fmt.Errorf("read memory: %w", err)
	}
	return nil
}

// Durable implements Memory.
func (e *Embedded) Durable() bool { return true }

// Close implements Memory.
func (e *Embedded) Close() error { return e.db.Close() }
