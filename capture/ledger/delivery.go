package ledger

import (
	"context"
	"errors"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/database"
)

// Copy is a turn of one group that Graphiti lacks, or may lack.
type Copy struct {
	Group  string
	Turn   string
	Seq    int64
	Sent   int64 // position in the order of sending, close to the time in microseconds, or 0
	Sends  int
	Losses int
	Joined []Copy // further copies that are sent and settled with it
}

// numbers returns the numbers of a copy and of those joined with it, as JSON.
func (c *Copy) numbers() string {
	list := []int64{c.Seq}
	for i := range c.Joined {
		list = append(list, c.Joined[i].Seq)
	}
	return jsonOf(list)
}

const copyColumns = "SELECT grp, turn, seq, sent, sends, losses FROM turns "

// copies returns the copies that a query selects.
func (s *Ledger) copiesOf(ctx context.Context, query string, args ...any) (list []Copy, err error) {
	err = each(ctx, s.db, copyColumns+query, args, func(scan func(...any) error) error {
		var c Copy
		err := scan(&c.Group, &c.Turn, &c.Seq, &c.Sent, &c.Sends, &c.Losses)
		list = append(list, c)
		return err
	})
	return list, err
}

// Waiting returns the groups with waiting copies.
func (s *Ledger) Waiting(ctx context.Context) (groups []string, err error) {
	err = each(ctx, s.db, "SELECT DISTINCT grp FROM turns WHERE state = 'pending'", nil, func(scan func(...any) error) error {
		var group string
		err := scan(&group)
		groups = append(groups, group)
		return err
	})
	return groups, err
}

const next = "state = 'pending' AND grp NOT IN (SELECT grp FROM withdrawn WHERE session = '' AND turn = '' AND message = '') ORDER BY backfill, seq LIMIT ?"

// Next returns the first n waiting copies of a group, or without one of all groups: the oldest
// first, and those from histories last. Next returns no copy of a
// forgotten group before Graphiti has deleted the group: the deletion would include the copy.
func (s *Ledger) Next(ctx context.Context, group string, n int) ([]Copy, error) {
	if group != "" {
		return s.copiesOf(ctx, "WHERE grp = ? AND "+next, group, n)
	}
	return s.copiesOf(ctx, "WHERE "+next, n)
}

// Sent returns the sent copies in the order of sending.
func (s *Ledger) Sent(ctx context.Context) ([]Copy, error) {
	return s.copiesOf(ctx, "WHERE state = 'sent' ORDER BY sent, seq")
}

// MarkSent marks a copy as sent, before it is sent, and sets its position and its number of sends. ok is
// false if it is settled.
func (s *Ledger) MarkSent(c *Copy) (ok bool, err error) {
	var sent int64
	err = s.deliver("mark a turn as sent", func(tx *database.Tx) error {
		// The order does not depend on the clock.
		if err := tx.QueryRow("SELECT CASE WHEN ?1 > coalesce(max(sent), 0) THEN ?1 ELSE max(sent) + 1 END FROM turns WHERE state = 'sent'", time.Now().UnixMicro()).Scan(&sent); err != nil {
			return err
		}
		r, err := tx.Exec("UPDATE turns SET state = 'sent', sends = sends + 1, sent = ?2"+inQueue, c.numbers(), sent)
		if err != nil {
			return err
		}
		n, err := r.RowsAffected()
		if ok = n == int64(1+len(c.Joined)); err == nil && !ok {
			return errTried
		}
		return err
	})
	if errors.Is(err, errTried) {
		return false, nil
	}
	c.Sent, c.Sends = sent, c.Sends+1
	return ok && err == nil, err
}

// inQueue selects copies by their numbers that are not settled.
const inQueue = " WHERE seq IN (SELECT CAST(value AS BIGINT) FROM json_each(?1)) AND state IN ('pending', 'sent')"

// Requeue makes a copy wait, with its numbers of sends and losses.
func (s *Ledger) Requeue(c *Copy, reason string) error {
	return s.settle(c, "pending", reason, false)
}

// MarkDelivered settles a copy; verified reports whether Graphiti lists it.
func (s *Ledger) MarkDelivered(c *Copy, verified bool) error {
	return s.settle(c, "delivered", "", verified)
}

// MarkDead gives a copy up, with its number of losses, until Retry.
func (s *Ledger) MarkDead(c *Copy, reason string) error { return s.settle(c, "dead", reason, false) }

// settle changes the state of a copy, unless it is settled. The position stays, unless Graphiti lists the copy or it is dead.
func (s *Ledger) settle(c *Copy, state, reason string, verified bool) error {
	return s.deliver("mark a turn as "+state, func(tx *database.Tx) error {
		r, err := tx.Exec(`UPDATE turns SET state = ?2, error = ?3, sends = ?4, losses = ?5, sent = CASE WHEN ?2 = 'delivered' AND NOT ?6 OR ?2 = 'pending' THEN sent ELSE 0 END,
			at = CASE WHEN ?2 = 'delivered' THEN ?7 ELSE at END`+inQueue, c.numbers(), state, reason, c.Sends, c.Losses, verified, time.Now().UnixMilli())
		if err != nil || state != "delivered" {
			return err
		}
		n, err := r.RowsAffected()
		if err == nil {
			err = count(tx, "delivered", int(n))
		}
		if err == nil && verified {
			err = count(tx, "verified", int(n))
		}
		return err
	})
}

// Again queues delivered turns of a group whose episode was deleted with another turn.
func (s *Ledger) Again(group string, turns []string) error {
	return s.deliver("queue turns again", func(tx *database.Tx) error {
		return run(tx, "UPDATE turns SET state = 'pending', sends = 0, sent = 0 WHERE grp = ? AND state = 'delivered' AND turn IN (SELECT value FROM json_each(?))", group, jsonOf(turns))
	})
}
