package ledger

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/database"
)

// Copy is a turn of one group that Graphiti lacks, or may lack.
type Copy struct {
	Group    string
	Turn     string
	Seq      int64
	Sent     int64 // position in the order of sending, or 0
	Sends    int
	Losses   int
	Backfill bool
}

const copyColumns = "SELECT grp, turn, seq, sent, sends, losses, backfill FROM turns "

// copies returns the copies that a query selects.
func (s *Ledger) copiesOf(ctx context.Context, query string, args ...any) (list []Copy, err error) {
	err = each(ctx, s.db, copyColumns+query, args, func(scan func(...any) error) error {
		var c Copy
		err := scan(&c.Group, &c.Turn, &c.Seq, &c.Sent, &c.Sends, &c.Losses, &c.Backfill)
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

// Next returns the first n waiting copies of a group, or of all.
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

// MarkSent marks a copy as sent.
func (s *Ledger) MarkSent(c *Copy) (ok bool, err error) {
	err = s.deliver("mark a turn as sent", func(tx *database.Tx) error {
		// The order does not depend on the clock.
		err := tx.QueryRow(`UPDATE turns SET state = 'sent', sends = sends + 1, sent = (SELECT CASE WHEN ?1 > coalesce(max(sent), 0) THEN ?1 ELSE max(sent) + 1 END FROM turns WHERE state = 'sent')
			WHERE seq = ?2 AND state IN ('pending', 'sent') RETURNING sent, sends`, time.Now().UnixMicro(), c.Seq).Scan(&c.Sent, &c.Sends)
		if ok = err == nil; errors.Is(err, sql.ErrNoRows) {
			return nil
		}
		return err
	})
	return ok, err
}

// inQueue selects a copy that is not settled.
const inQueue = " WHERE seq = ? AND state IN ('pending', 'sent')"

// Requeue makes a copy wait.
func (s *Ledger) Requeue(c *Copy, reason string) error {
	return s.deliver("queue a turn again", func(tx *database.Tx) error {
		return run(tx, "UPDATE turns SET state = 'pending', sent = 0, error = ?, losses = ?"+inQueue, reason, c.Losses, c.Seq)
	})
}

// MarkDelivered settles a copy.
func (s *Ledger) MarkDelivered(c *Copy, verified bool) error {
	return s.deliver("mark a turn as delivered", func(tx *database.Tx) error {
		r, err := tx.Exec("UPDATE turns SET state = 'delivered', at = ?, error = '', sent = CASE WHEN ? THEN 0 ELSE sent END"+inQueue, time.Now().UnixMilli(), verified, c.Seq)
		if err != nil {
			return err
		}
		if n, err := r.RowsAffected(); err != nil || n == 0 {
			return err
		}
		if err := count(tx, "delivered", 1); err != nil || !verified {
			return err
		}
		return count(tx, "verified", 1)
	})
}

// MarkDead gives a copy up.
func (s *Ledger) MarkDead(c *Copy, reason string) error {
	return s.deliver("mark a turn as dead", func(tx *database.Tx) error {
		return run(tx, "UPDATE turns SET state = 'dead', sent = 0, error = ?, losses = ?"+inQueue, reason, c.Losses, c.Seq)
	})
}
