package service

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
)

// Spool holds the turns that are not delivered: a *capture.Pipeline. With no numbers, Retry and
// Drop mean all dead turns.
type Spool interface {
	Turns(ctx context.Context, o ledger.ListOptions) (list []ledger.Item, all int, err error)
	Retry(numbers []int64) (int, error)
	Drop(numbers []int64) (int, error)
	Send(since time.Time) (int, error)
}

// Listed is a list of turns that are not delivered.
type Listed struct {
	All   int           `json:"all"` // number of matching turns, listed or not
	Turns []ledger.Item `json:"turns"`
}

// Selection names dead turns by their numbers, or all of them.
type Selection struct {
	Numbers []int64 `json:"numbers,omitempty"`
	All     bool    `json:"all,omitempty" help:"all dead letters"`
}

// SendRequest is the input of Send.
type SendRequest struct {
	Since string `json:"since" help:"date of the first turn to send, such as 2026-01-31"`
}

// Affected counts the turns that an operation changed.
type Affected struct {
	Turns int `json:"turns"`
}

const (
	MaxListed  = 1000
	maxNumbers = 10_000
)

// check returns an error for a request whose turns cannot be listed.
func (r *TurnsRequest) check() error {
	if r.Condition != "" && !slices.Contains(ledger.Conditions, r.Condition) {
		return invalid(fmt.Sprintf("state: %q is not one of %s, %s, %s", r.Condition, ledger.Waiting, ledger.UnderWay, ledger.Dead))
	}
	return CheckLimit(r.Limit)
}

func (s *Selection) check() error {
	if s.All == (len(s.Numbers) > 0) || len(s.Numbers) > maxNumbers {
		return invalid(fmt.Sprintf(`name the turns by their numbers, at most %d, or say all`, maxNumbers))
	}
	return nil
}
