package replica

import (
	"context"
	"errors"
	"strconv"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
)

var leftScript = script("left")

// errEnough ends a read.
var errEnough = errors.New("enough")

// Since implements ledger.Arrivals.
func (s *Queue) Since(ctx context.Context, after int64, n int, f func(group string, e ledger.Entry) error) error {
	err := s.read(ctx, "("+strconv.FormatInt(after, 10)+"-0", func(e *entry) error {
		if n == 0 {
			return errEnough
		}
		n--
		out, err := e.withMark(mark{})
		if err != nil {
			return err
		}
		return f(e.Group, out)
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

// Left implements ledger.Arrivals.
func (s *Queue) Left(ctx context.Context, numbers []int64) ([]int64, error) {
	args := make([]any, len(numbers))
	for i, n := range numbers {
		args[i] = n
	}
	return s.run(ctx, "look what has left the spool", leftScript, false, nil, args...)
}
