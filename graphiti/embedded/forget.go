package embedded

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/database"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Forget implements graphiti.Forgetter. It overwrites deleted data in the file, and removes
// it from the file's log.
func (e *Store) Forget(ctx context.Context, group string) error {
	_, err := e.ForgetEpisodes(ctx, group, nil)
	return err
}

// ForgetEpisodes implements graphiti.Forgetter, as Forget does.
func (e *Store) ForgetEpisodes(ctx context.Context, group string, meant func(*graphiti.Row) bool) ([]string, error) {
	var names []string
	err := e.db.Write(ctx, func(tx *database.Tx) (err error) {
		tx.Checkpoint()
		names, err = inFile{e}.Delete(tx, group, meant)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("forget episodes: %w", err)
	}
	return names, nil
}

func (e inFile) Delete(tx *database.Tx, group string, meant func(*graphiti.Row) bool) (names []string, err error) {
	err = e.deleteIn(tx, group, func(g int64) (err error) {
		if meant == nil {
			return deleteAll(tx, g)
		}
		names, err = deleteMeant(tx, g, group, meant)
		return err
	})
	return names, err
}

// DeleteFacts implements ledger.MessageStore.
func (e inFile) DeleteFacts(tx *database.Tx, group string, before time.Time) (n int, err error) {
	err = e.deleteIn(tx, group, func(g int64) error {
		facts, err := column[int64](tx, "SELECT id FROM facts WHERE grp = ? AND created_at < ?", g, before.UnixMilli())
		n = len(facts)
		return errors.Join(err, deleteFacts(tx, facts))
	})
	return n, err
}

// deleteIn calls remove with the number of a group, if there is one.
func (e inFile) deleteIn(tx *database.Tx, group string, remove func(g int64) error) error {
	if err := e.lock(tx, group); err != nil {
		return err
	}
	var g int64
	if err := tx.QueryRow("SELECT id FROM groups WHERE name = ?", group).Scan(&g); errors.Is(err, sql.ErrNoRows) {
		return nil
	} else if err != nil {
		return err
	}
	if err := remove(g); err != nil {
		return err
	}
	tx.Committed(func() {
		e.recent.drop()
		e.index.Deleted(group)
		e.outlines.Remove(group)
	})
	if e.mean != nil {
		e.mean.forget(g)
	}
	return nil
}

// Extents implements ledger.MessageStore.
func (e inFile) Extents(ctx context.Context) (map[string]graphiti.Extent, error) {
	all := make(map[string]graphiti.Extent)
	err := e.db.Each(ctx, "SELECT g.name, count(*), sum(octet_length(m.content)), min(m.said), max(m.said) FROM messages m JOIN groups g ON g.id = m.grp GROUP BY g.name", nil, func(scan func(...any) error) error {
		var group string
		var of graphiti.Extent
		var first, last int64
		err := scan(&group, &of.Messages, &of.Bytes, &first, &last)
		of.First, of.Last = time.UnixMilli(first), time.UnixMilli(last)
		all[group] = of
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("measure the memory: %w", err)
	}
	return all, nil
}

func deleteAll(tx *database.Tx, group int64) error {
	for _, q := range []string{
		"DELETE FROM vectors WHERE id >> 32 = ?",
		"DELETE FROM facts WHERE grp = ?",
		"DELETE FROM messages WHERE grp = ?",
		"DELETE FROM groups WHERE id = ?",
	} {
		if _, err := tx.Exec(q, group); err != nil {
			return err
		}
	}
	return nil
}

func deleteMeant(tx *database.Tx, group int64, name string, meant func(*graphiti.Row) bool) (names []string, err error) {
	rows, err := tx.Query("SELECT id, name, source, said FROM messages WHERE grp = ? ORDER BY id", group)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	var ids []string
	for rows.Next() {
		r := graphiti.Row{Group: name}
		var said int64
		if err := rows.Scan(&r.Key, &r.Name, &r.Source, &said); err != nil {
			return nil, err
		}
		r.Said = time.UnixMilli(said)
		if meant(&r) {
			ids, names = append(ids, r.Key), append(names, r.Name)
		}
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	facts, err := factsMeant(tx, group, meant)
	if err == nil {
		err = deleteFacts(tx, facts)
	}
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		if err := forgetFacts(tx, id); err != nil {
			return nil, err
		}
		for _, q := range []string{
			"DELETE FROM vectors WHERE id = ?",
			"DELETE FROM messages WHERE id = ?",
		} {
			if _, err := tx.Exec(q, id); err != nil {
				return nil, err
			}
		}
	}
	return names, nil
}
