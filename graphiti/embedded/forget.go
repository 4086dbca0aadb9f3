package embedded

import (
	"context"
	"fmt"
	"strconv"

	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// ForgetEpisodes implements graphiti.Forgetter. As with Forget, what is deleted is in the
// file no more.
func (e *Store) ForgetEpisodes(ctx context.Context, group string, meant func(*graphiti.Episode) bool) (names []string, err error) {
	g, ok, err := e.group(ctx, group)
	if err != nil || !ok {
		return nil, err
	}
	var ids []int64
	err = e.episodes(ctx, group, "SELECT id, name, speaker, role, content, source, kept, said FROM messages WHERE grp = ? ORDER BY id", []any{g}, func(ep graphiti.Episode) error {
		if !meant(&ep) {
			return nil
		}
		id, err := strconv.ParseInt(ep.UUID, 10, 64)
		ids, names = append(ids, id), append(names, ep.Name)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("list episodes: %w", err)
	}
	if len(ids) == 0 {
		return nil, nil
	}
	err = e.db.Write(ctx, func(tx *sqlite.Tx) error {
		for i, id := range ids {
			// Another call may have deleted it, and its number been given again.
			var there bool
			if err := tx.QueryRow("SELECT EXISTS (SELECT 1 FROM messages WHERE id = ? AND name = ?)", id, names[i]).Scan(&there); err != nil {
				return err
			}
			if !there {
				continue
			}
			for _, q := range []string{
				"DELETE FROM vectors WHERE id = ?",
				"DELETE FROM unread WHERE id = ?",
				"UPDATE groups SET size = size - 1 WHERE id = (SELECT grp FROM messages WHERE id = ?)",
				"DELETE FROM messages WHERE id = ?",
			} {
				if _, err := tx.Exec(q, id); err != nil {
					return err
				}
			}
		}
		tx.Fold()
		tx.Committed(func() { e.index.Deleted(group) })
		if e.mean != nil {
			e.mean.forget(g)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("forget episodes: %w", err)
	}
	return names, nil
}
