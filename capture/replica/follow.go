package replica

import (
	"context"
	"errors"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
)

var leftScript = script("left")

// errEnough ends a read early.
var errEnough = errors.New("enough")

// Since implements ledger.Arrivals. If Redis was emptied, the numbers of entries start at 1
// again, and so does Since.
func (s *Queue) Since(ctx context.Context, after int64, n int, f func(ledger.Entry) error) error {
	found := 0
	err := s.read(ctx, "("+idOf(after), func(e *streamEntry) error {
		if found == n {
			return errEnough
		}
		found++
		out, err := e.withMark(entryState{})
		if err != nil {
			return err
		}
		return f(out)
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	if err != nil || found > 0 || after == 0 {
		return err
	}
	if last, err := s.lastNumber(ctx); err != nil || last >= after {
		return err
	}
	return s.Since(ctx, 0, n, f)
}

// Left implements ledger.Arrivals.
func (s *Queue) Left(ctx context.Context, numbers []int64) ([]int64, error) {
	return s.run(ctx, "read removed spool entries", leftScript, false, nil, anyOf(numbers)...)
}
