package embedded

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Seek looks episodes up, in the order of their storage. It reads only candidates in full:
// names are looked up, an id is compared with all names of the group, and a conversation
// with the sources of all messages of the group.
func (e *Store) Seek(ctx context.Context, group string, s graphiti.Sought, f func(graphiti.Episode) error) error {
	g, ok, err := e.group(ctx, group)
	if err != nil || !ok {
		return err
	}
	names := s.Names
	if s.Message != "" {
		named, err := e.named(ctx, g, s.Message)
		if err != nil {
			return fmt.Errorf("seek episodes: %w", err)
		}
		names = append(named, names...)
	}
	byName, _ := json.Marshal(names) // strings only
	ids := []int64{}
	for _, uuid := range s.UUIDs {
		if id, err := strconv.ParseInt(uuid, 10, 64); err == nil {
			ids = append(ids, id)
		}
	}
	byID, _ := json.Marshal(ids) // numbers only
	s.Names, s.Message = names, ""
	err = e.episodes(ctx, group, sought, []any{g, string(byName), string(byID), s.Session != "", g << placeBits, g<<placeBits | maxPlace, asWritten(s.Session)}, func(ep graphiti.Episode) error {
		if s.Means(&ep) { // another may have the session's hash elsewhere in its source
			return f(ep)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("seek episodes: %w", err)
	}
	return nil
}

// sought selects episodes by name, by id, and by session.
const sought = `SELECT id, name, speaker, role, content, source, kept, said FROM messages WHERE id IN (
	SELECT m.id FROM json_each(?2) j CROSS JOIN messages m ON m.grp = ?1 AND m.name = j.value
	UNION SELECT m.id FROM json_each(?3) j CROSS JOIN messages m ON m.id = j.value AND m.grp = ?1
	UNION SELECT id FROM messages WHERE ?4 AND id BETWEEN ?5 AND ?6 AND instr(source, ?7) > 0
) ORDER BY id`

// asWritten returns a session's hash if JSON writes it without escapes. Otherwise it
// returns "", which every source contains: hashes of other programs may have any form.
func asWritten(session string) string {
	if strings.ContainsFunc(session, func(r rune) bool {
		return r >= unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) && r != '-' && r != '_'
	}) {
		return ""
	}
	return session
}

// named returns the names of a group's messages that have an id.
func (e *Store) named(ctx context.Context, group int64, id string) (names []string, err error) {
	err = e.db.Each(ctx, "SELECT name FROM messages WHERE grp = ?", []any{group}, func(scan func(...any) error) error {
		var name string
		if err := scan(&name); err != nil {
			return err
		}
		if graphiti.MessageID(name) == id {
			names = append(names, name)
		}
		return nil
	})
	return names, err
}
