package ledger

import (
	"context"
	"encoding/json"

	"github.com/graphiti-proxy/graphiti-proxy/cache/database"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Unread is an episode of Graphiti with unread facts. It has no text.
type Unread struct {
	Group   string
	Names   []string // of its messages
	Episode graphiti.Row
	Tries   int `json:"-"` // earlier reads
}

// NewUnread returns an episode of a group, without its text.
func NewUnread(group string, e *graphiti.Row) Unread {
	u := Unread{Group: group, Episode: graphiti.Row{Key: e.Key, Name: e.Name, Said: e.Said, Facts: e.Facts}}
	for _, side := range e.Sides() {
		u.Names = append(u.Names, side.Name)
	}
	return u
}

// AddUnread stores episodes until Read.
func (s *Ledger) AddUnread(list []Unread) error {
	return s.write("record episodes to read", func(tx *database.Tx) error {
		for i := range list {
			body, err := json.Marshal(&list[i])
			if err == nil {
				err = run(tx, "INSERT INTO unread (grp, key, body) VALUES (?, ?, ?) ON CONFLICT DO NOTHING", list[i].Group, list[i].Episode.Key, string(body))
			}
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// Unread returns the first n episodes to read. Failed ones follow the others.
func (s *Ledger) Unread(ctx context.Context, n int) (list []Unread, err error) {
	err = each(ctx, s.db, "SELECT body, tries FROM unread ORDER BY tries, rowid LIMIT ?", []any{n},
		func(scan func(...any) error) error {
			var u Unread
			var body []byte
			err := scan(&body, &u.Tries)
			if err == nil {
				err = json.Unmarshal(body, &u)
			}
			list = append(list, u)
			return err
		})
	return list, err
}

// Read ends the wait of an episode, or counts an attempt.
func (s *Ledger) Read(u *Unread, done bool) error {
	return s.deliver("record the read of an episode", func(tx *database.Tx) error {
		if done {
			return run(tx, "DELETE FROM unread WHERE grp = ? AND key = ?", u.Group, u.Episode.Key)
		}
		return run(tx, "UPDATE unread SET tries = tries + 1 WHERE grp = ? AND key = ?", u.Group, u.Episode.Key)
	})
}
