package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Entry is a queued turn of one group.
type Entry struct {
	Group    string
	Seq      int64
	Bytes    int
	Scope    graphiti.Scope
	Have     Sides
	Losses   int
	Backfill bool
	Turn     Turn
}

// Sides is the set of a turn's messages that a group holds.
type Sides uint8

const (
	SideUser Sides = 1 << iota
	SideAssistant
)

// SideOf returns the side of messages with a role.
func SideOf(role graphiti.RoleType) Sides {
	if role == graphiti.RoleAssistant {
		return SideAssistant
	}
	return SideUser
}

// Groups calls found for each group with pending turns; fresh reports whether some are not
// backfilled.
func (s *Ledger) Groups(found func(group string, fresh bool)) error {
	return each(context.Background(), s.db, "SELECT grp, min(backfill) FROM turns WHERE state = 'pending' GROUP BY grp", nil,
		func(scan func(...any) error) error {
			var group string
			var backfill bool
			err := scan(&group, &backfill)
			found(group, !backfill)
			return err
		})
}

// InDoubt calls found for each entry that was sent and may or may not be stored, oldest
// first.
func (s *Ledger) InDoubt(found func(Entry)) error {
	return s.entries(context.Background(), entryColumns+" FROM turns WHERE state = 'sent' ORDER BY sent, seq", nil,
		func(e Entry, _ string, _ time.Time) error { found(e); return nil })
}

// entryColumns is the start of a query for entries.
const entryColumns = "SELECT grp, digest, at, seq, scope, have, losses, backfill, body"

// entries calls f for each entry of a query, with the digest and the arrival of its turn.
func (s *Ledger) entries(ctx context.Context, query string, args []any, f func(e Entry, said string, born time.Time) error) error {
	return each(ctx, s.db, query, args, func(scan func(...any) error) error {
		var e Entry
		var said string
		var born int64
		var body []byte
		if err := scan(&e.Group, &said, &born, &e.Seq, &e.Scope, &e.Have, &e.Losses, &e.Backfill, &body); err != nil {
			return err
		}
		e.Bytes = len(body)
		if err := json.Unmarshal(body, &e.Turn); err != nil {
			return fmt.Errorf("entry %d: %w", e.Seq, err)
		}
		return f(e, said, time.UnixMilli(born))
	})
}

// Next returns the first n pending entries of a group.
func (s *Ledger) Next(ctx context.Context, group string, n int) (out []Entry, err error) {
	err = s.entries(ctx, entryColumns+" FROM turns WHERE grp = ? AND state = 'pending' ORDER BY backfill, seq LIMIT ?", []any{group, n},
		func(e Entry, _ string, _ time.Time) error { out = append(out, e); return nil })
	return out, err
}

// MarkSent marks entries as sent, before they are sent: if the process ends in between,
// they are in doubt.
func (s *Ledger) MarkSent(entries []Entry) error {
	return s.write("mark turns as sent", func(tx *sqlite.Tx) error {
		// sent follows the order of sending, independent of the clock.
		var last int64
		err := tx.QueryRow("SELECT coalesce((SELECT sent FROM turns WHERE state = 'sent' ORDER BY sent DESC LIMIT 1), 0)").Scan(&last)
		if err != nil {
			return err
		}
		for i := range entries {
			last++
			if _, err := tx.Exec("UPDATE turns SET state = 'sent', sent = ? WHERE seq = ? AND state IN ('pending', 'sent')", last, entries[i].Seq); err != nil {
				return err
			}
		}
		return nil
	})
}

// Requeue returns entries to pending after an attempt.
func (s *Ledger) Requeue(entries []Entry, reason string) error {
	return s.write("requeue turns", func(tx *sqlite.Tx) error {
		for i := range entries {
			_, err := tx.Exec("UPDATE turns SET state = 'pending', sent = 0, attempts = attempts + 1, error = ?, have = ?, losses = ? WHERE seq = ? AND state IN ('pending', 'sent')",
				reason, entries[i].Have, entries[i].Losses, entries[i].Seq)
			if err != nil {
				return err
			}
		}
		return nil
	})
}

// MarkDelivered marks the entries of a group as delivered, and returns the size of the
// entries that left the queue. verified reports whether the memory listed them.
func (s *Ledger) MarkDelivered(entries []Entry, verified bool, now time.Time) (gone Size, err error) {
	err = s.write("mark turns as delivered", func(tx *sqlite.Tx) error {
		numbers := make([]int64, len(entries))
		for i := range entries {
			numbers[i] = entries[i].Seq
		}
		var err error
		if gone, err = settle(tx, numbers, delivered, now); err != nil {
			return err
		}
		if err := count(tx, "delivered", gone.Turns); err != nil || !verified {
			return err
		}
		return count(tx, "verified", gone.Turns)
	})
	return gone, err
}

// MarkDead marks an entry as a dead letter, and returns its size if it was queued.
func (s *Ledger) MarkDead(e *Entry, reason string) (gone Size, err error) {
	err = s.write("mark turn as dead", func(tx *sqlite.Tx) error {
		gone = Size{}
		r, err := tx.Exec("UPDATE turns SET state = 'dead', sent = 0, attempts = attempts + 1, error = ?, have = ?, losses = ? WHERE seq = ? AND state IN ('pending', 'sent')",
			reason, e.Have, e.Losses, e.Seq)
		if err != nil {
			return err
		}
		if n, err := r.RowsAffected(); err == nil && n > 0 {
			gone = Size{1, e.Bytes}
		}
		return nil
	})
	return gone, err
}
