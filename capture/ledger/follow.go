package ledger

import (
	"context"
	"fmt"
	"time"
)

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
