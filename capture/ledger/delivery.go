package ledger

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Entry is a turn that waits for one group.
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

// Sides tells which messages of a turn a group holds.
type Sides uint8

const (
	SideUser Sides = 1 << iota
	SideAssistant
)

// SideOf returns the side of a turn that has messages of a role.
func SideOf(role graphiti.RoleType) Sides {
	if role == graphiti.RoleAssistant {
		return SideAssistant
	}
	return SideUser
}

// Groups calls found for each group for which turns wait that were not handed
// over; fresh says that not all of them are backfill.
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

// InDoubt calls found for each entry that was handed over and that the memory may
// or may not hold, the oldest first.
func (s *Ledger) InDoubt(found func(Entry)) error {
	return s.entries(context.Background(), entryColumns+" FROM turns WHERE state = 'sent' ORDER BY sent, seq", nil,
		func(e Entry, _ string, _ time.Time) error { found(e); return nil })
}

// entryColumns begins a query of entries.
const entryColumns = "SELECT grp, digest, at, seq, scope, have, losses, backfill, body"

// entries calls f for the entries that a query returns, with what was said in their turns
// and when they came in.
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

// Next returns the first n entries that wait for a group.
func (s *Ledger) Next(ctx context.Context, group string, n int) (out []Entry, err error) {
	err = s.entries(ctx, entryColumns+" FROM turns WHERE grp = ? AND state = 'pending' ORDER BY backfill, seq LIMIT ?", []any{group, n},
		func(e Entry, _ string, _ time.Time) error { out = append(out, e); return nil })
	return out, err
}

// MarkSent notes entries as sent, before they are sent: if the process ends meanwhile,
// they are in doubt.
func (s *Ledger) MarkSent(entries []Entry) error {
	return s.write("note hand-over", func(tx *sqlite.Tx) error {
		// In the order in which that happens, whatever the clock says.
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

// Requeue notes that entries, which may have been handed over, wait again.
func (s *Ledger) Requeue(entries []Entry, reason string) error {
	return s.write("note failure", func(tx *sqlite.Tx) error {
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

// MarkDelivered notes that a group has the entries, and returns the size of what left
// the spool. verified says that they were seen in the memory.
func (s *Ledger) MarkDelivered(entries []Entry, verified bool, now time.Time) (gone Size, err error) {
	err = s.write("note delivery", func(tx *sqlite.Tx) error {
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

// MarkDead notes that the entry is never sent again, and returns the size of what became
// dead.
func (s *Ledger) MarkDead(e *Entry, reason string) (gone Size, err error) {
	err = s.write("note refusal", func(tx *sqlite.Tx) error {
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

// Undelivered calls found for the first n entries of all groups that are not dead,
// with what was said in their turns and when they came in.
func (s *Ledger) Undelivered(ctx context.Context, n int, found func(e Entry, said string, born time.Time) error) error {
	return s.entries(ctx, entryColumns+" FROM turns WHERE "+queued+" AND state <> 'dead' ORDER BY backfill, seq LIMIT ?", []any{n}, found)
}

// HandedOver deletes entries that another spool has now.
func (s *Ledger) HandedOver(seqs []int64) error {
	if len(seqs) == 0 {
		return nil
	}
	return s.write("note hand-over", func(tx *sqlite.Tx) error {
		for _, seq := range seqs {
			if _, err := tx.Exec("DELETE FROM turns WHERE seq = ?", seq); err != nil {
				return err
			}
		}
		return nil
	})
}

const arrived = entryColumns + " FROM turns WHERE seq > iif(?1 > (SELECT coalesce(max(seq), 0) FROM turns), 0, ?1) AND " + queued + " ORDER BY seq LIMIT ?2"

// Since implements Arrivals. Where the last turns were deleted numbers are given again, and
// it begins with the first.
func (s *Ledger) Since(ctx context.Context, after int64, n int, f func(Entry) error) error {
	return s.entries(ctx, arrived, []any{after, n}, func(e Entry, _ string, _ time.Time) error { return f(e) })
}

// leftQueue looks each number up: the queue may be long.
const leftQueue = "SELECT value FROM json_each(?) WHERE NOT EXISTS (SELECT 1 FROM turns WHERE seq = value AND " + queued + ")"

// Left implements Arrivals.
func (s *Ledger) Left(ctx context.Context, numbers []int64) (left []int64, err error) {
	err = each(ctx, s.db, leftQueue, []any{listOf(numbers)},
		func(scan func(...any) error) error {
			var n int64
			err := scan(&n)
			left = append(left, n)
			return err
		})
	if err != nil {
		return nil, fmt.Errorf("look what has left the queue: %w", err)
	}
	return left, nil
}

// CutOff is what is noted of an answer that was interrupted.
type CutOff struct{ ID, Group, Said string }

// Cuts returns the first n notes of interrupted answers.
func (s *Ledger) Cuts(ctx context.Context, n int) (list []CutOff, err error) {
	err = each(ctx, s.db, "SELECT turn, grp, digest FROM turns WHERE state = 'cut' ORDER BY seq LIMIT ?", []any{n},
		func(scan func(...any) error) error {
			var c CutOff
			err := scan(&c.ID, &c.Group, &c.Said)
			list = append(list, c)
			return err
		})
	return list, err
}

// RemoveCuts deletes notes that another ledger has now.
func (s *Ledger) RemoveCuts(list []CutOff) error {
	return s.write("note hand-over", func(tx *sqlite.Tx) error {
		for _, c := range list {
			if err := run(tx, "DELETE FROM turns WHERE turn = ? AND grp = ? AND state = 'cut'", c.ID, c.Group); err != nil {
				return err
			}
		}
		return nil
	})
}
