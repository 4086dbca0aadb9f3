package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/database"
)

// Held is a turn that may be a client's request about another turn, such as for a title. No
// group contains it until it is added.
type Held struct {
	Key    string   // of the turn and its groups
	Turn   Turn     // redacted
	Before [16]byte // the conversation before the person's message
	With   [16]byte // the conversation with it
	At     time.Time
	Reason string // reason of graphiti.FateHeld
}

// Hold stores a turn outside of all groups.
func (s *Ledger) Hold(h *Held) error {
	body, err := json.Marshal(h)
	if err != nil {
		return fmt.Errorf("hold a turn: %w", err)
	}
	return s.write("hold a turn", func(tx *database.Tx) error {
		return run(tx, "INSERT INTO held (key, body) VALUES (?, ?) ON CONFLICT DO NOTHING", h.Key, string(body))
	})
}

// EachHeld calls f for the held turn with a key, or for all of them without one.
func (s *Ledger) EachHeld(key string, f func(h *Held) error) error {
	return each(context.Background(), s.db, "SELECT body FROM held WHERE ?1 IN ('', key) ORDER BY rowid", []any{key}, func(scan func(...any) error) error {
		var body string
		if err := scan(&body); err != nil {
			return err
		}
		var h Held
		if err := json.Unmarshal([]byte(body), &h); err != nil {
			return fmt.Errorf("read a held turn: %w", err)
		}
		return f(&h)
	})
}

// Unhold deletes a held turn.
func (s *Ledger) Unhold(key string) error {
	return s.write("delete a held turn", func(tx *database.Tx) error { return run(tx, "DELETE FROM held WHERE key = ?", key) })
}
