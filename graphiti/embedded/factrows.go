package embedded

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Distilled implements graphiti.Distiller.
func (e *Store) Distilled(ctx context.Context, group string, f func(*graphiti.Distilled) error) error {
	return e.eachFact(ctx, group, false, func(d *graphiti.Distilled) error { return f(d) })
}

// eachFact calls f for the facts of a group, or the valid ones, the oldest first.
func (e *Store) eachFact(ctx context.Context, group string, valid bool, f func(*graphiti.Distilled) error) error {
	g, ok, err := e.group(ctx, group)
	if err != nil || !ok {
		return err
	}
	err = e.db.Each(ctx, `SELECT f.name, f.owner, f.role, f.text, f.kind, f.about, f.valid_from, coalesce(f.valid_until, 0), f.created_at,
		coalesce((SELECT b.name FROM facts b WHERE b.id = f.ended_by), ''),
		coalesce((SELECT group_concat(key, char(10)) FROM fact_keys WHERE fact = f.id), ''),
		coalesce((SELECT group_concat(m.name, char(10)) FROM fact_sources s JOIN messages m ON m.id = s.message WHERE s.fact = f.id), ''),
		coalesce((SELECT m.source FROM messages m WHERE m.id = (SELECT max(message) FROM fact_sources WHERE fact = f.id)), '')
		FROM facts f WHERE f.grp = ? AND (NOT ? OR f.valid_until IS NULL OR f.valid_until > ?) ORDER BY f.id`,
		[]any{g, valid, time.Now().UnixMilli()}, func(scan func(...any) error) error {
			var d graphiti.Distilled
			var role, keys, sources string
			var since, until, made int64
			if err := scan(&d.Name, &d.Owner, &role, &d.Text, &d.Kind, &d.About, &since, &until, &made, &d.EndedBy, &keys, &sources, &d.Source); err != nil {
				return err
			}
			d.Role, d.Keys, d.Sources = graphiti.RoleType(role), lines(keys), lines(sources)
			d.Since, d.Until, d.Made = time.UnixMilli(since).UTC(), timeOf(until), time.UnixMilli(made).UTC()
			return f(&d)
		})
	if err != nil {
		return fmt.Errorf("list facts: %w", err)
	}
	return nil
}

// FactsIn returns the texts of the distilled facts whose last message has one of the names.
func (e *Store) FactsIn(ctx context.Context, group string, names []string) (texts []string, err error) {
	list, err := json.Marshal(names)
	if err == nil {
		err = e.db.Each(ctx, `SELECT f.text FROM groups g JOIN facts f ON f.grp = g.id JOIN messages m ON m.id = (SELECT max(message) FROM fact_sources WHERE fact = f.id)
			WHERE g.name = ? AND m.name IN (SELECT value FROM json_each(?)) AND f.name NOT LIKE '`+graphiti.PulledPrefix+`%' ORDER BY f.id`, []any{group, string(list)}, func(scan func(...any) error) error {
			var text string
			err := scan(&text)
			texts = append(texts, text)
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("read facts: %w", err)
	}
	return texts, nil
}

// Stored returns the extent of the memory. It has the bytes of a shared database only.
func (e *Store) Stored(ctx context.Context) (s graphiti.Stored, err error) {
	err = e.db.QueryRow(ctx, `SELECT (SELECT count(*) FROM messages), (SELECT count(*) FROM undistilled),
		(SELECT count(*) FROM facts WHERE valid_until IS NULL), (SELECT count(*) FROM facts WHERE valid_until IS NOT NULL)`, nil,
		&s.Messages, &s.Waiting, &s.Facts, &s.Ended)
	switch {
	case err != nil:
	case e.db.Shared():
		err = e.db.QueryRow(ctx, "SELECT pg_database_size(current_database())", nil, &s.Bytes)
	default:
		err = e.db.QueryRow(ctx, "SELECT freelist_count * page_size FROM pragma_freelist_count, pragma_page_size", nil, &s.Free)
	}
	if err != nil {
		return s, fmt.Errorf("count the rows of the memory: %w", err)
	}
	return s, nil
}

func timeOf(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

func lines(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(s, "\n")
}
