package service

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"

	"github.com/graphiti-proxy/graphiti-proxy/capture"
	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/embedded"
)

// Spool holds the turns that are not delivered: *capture.Pipeline of a proxy
// that runs, *capture.Offline where none does. With no numbers, Retry and Drop
// mean all dead letters.
type Spool interface {
	Letters(ctx context.Context, o ledger.ListOptions) (list []ledger.Item, all int, err error)
	Retry(numbers []int64) (int, error)
	Drop(numbers []int64) (int, error)
}

// Queue is what people ask of the turns that are not delivered.
type Queue struct{ Spool Spool }

// Queue is that of the service's memory.
func (sv *Service) Queue() Queue { return Queue{sv.o.Pipeline} }

// StoppedQueue is the queue of a proxy that does not run.
type StoppedQueue struct {
	Queue
	files *capture.Offline
}

// NewStoppedQueue takes the open files of the proxy, and closes them.
func NewStoppedQueue(files *capture.Offline) StoppedQueue {
	return StoppedQueue{Queue{files}, files}
}

// OpenLedger opens the record of turns of a data directory: in the file of the
// embedded memory, or in its own where the memory is remote.
func OpenLedger(dir string, remote bool) (*ledger.Ledger, error) {
	if remote {
		return ledger.Open(filepath.Join(dir, "spool.db"))
	}
	e, err := embedded.Open(filepath.Join(dir, "memory.db"))
	if err != nil {
		return nil, err
	}
	return e.Ledger(nil), nil
}

// Counts counts the turns.
func (q StoppedQueue) Counts(ctx context.Context) (capture.QueueStatus, error) {
	return q.files.Status(ctx)
}

// Close closes its files.
func (q StoppedQueue) Close() error { return q.files.Close() }

// Listed are turns that are not delivered.
type Listed struct {
	All   int           `json:"all"` // that match, listed or not
	Turns []ledger.Item `json:"turns"`
}

// Selection names dead letters by their numbers, or all of them.
type Selection struct {
	Numbers []int64 `json:"numbers,omitempty"`
	All     bool    `json:"all,omitempty"`
}

// Affected counts the turns of a Selection that were there.
type Affected struct {
	Turns int `json:"turns"`
}

const (
	maxListed  = 1000
	maxNumbers = 10_000
)

// CheckList refuses what cannot be listed.
func CheckList(o ledger.ListOptions) error {
	if o.Condition != "" && !slices.Contains(ledger.Conditions, o.Condition) {
		return invalid(fmt.Sprintf("state: %q is not one of %s, %s, %s", o.Condition, ledger.Waiting, ledger.UnderWay, ledger.Dead))
	}
	if o.Limit < 1 || o.Limit > maxListed {
		return invalid(fmt.Sprintf("limit: %d is not a number from 1 to %d", o.Limit, maxListed))
	}
	return nil
}

// List lists turns that are not delivered, oldest first.
func (q Queue) List(ctx context.Context, o ledger.ListOptions) (l Listed, err error) {
	if err := CheckList(o); err != nil {
		return l, err
	}
	l.Turns, l.All, err = q.Spool.Letters(ctx, o)
	return l, err
}

// Retry has dead letters delivered again.
func (q Queue) Retry(_ context.Context, s Selection) (Affected, error) { return s.each(q.Spool.Retry) }

// Drop removes dead letters for good.
func (q Queue) Drop(_ context.Context, s Selection) (Affected, error) { return s.each(q.Spool.Drop) }

func (s Selection) each(do func([]int64) (int, error)) (Affected, error) {
	if s.All == (len(s.Numbers) > 0) || len(s.Numbers) > maxNumbers {
		return Affected{}, invalid(fmt.Sprintf(`name the turns by their numbers, at most %d, or say all`, maxNumbers))
	}
	n, err := do(s.Numbers)
	return Affected{n}, err
}
