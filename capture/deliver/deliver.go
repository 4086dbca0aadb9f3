// Package deliver owns the way of turns from pending to delivered: it decides what to send, the proof
// of an arrival, and which turns to send again. design.md explains it.
//
// It must not know how turns are stored or which processes share the queue: the Ledger
// interface hides both. Of the module's packages it may import graphiti and capture/ledger
// (the row of a turn).
package deliver

import (
	"context"
	"log/slog"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// Ledger is a ledger.Ledger with the messages of its turns. One process uses it at a time. After a failure,
// a Loop reads it again.
type Ledger interface {
	Waiting(ctx context.Context) (groups []string, err error)
	Next(ctx context.Context, group string, n int) ([]ledger.Copy, error)
	Sent(ctx context.Context) ([]ledger.Copy, error)
	MarkSent(c *ledger.Copy) (ok bool, err error)
	Requeue(c *ledger.Copy, reason string) error
	MarkDelivered(c *ledger.Copy, verified bool) error
	MarkDead(c *ledger.Copy, reason string) error
	Withdrawn(ctx context.Context, group string) ([]ledger.Withdrawn, error)
	Settle(list []ledger.Withdrawn) error
	Again(group string, turns []string) error

	// Messages returns the messages of a copy for Graphiti, or none if it is not worth one. It may join
	// waiting copies with a copy that was never sent.
	Messages(ctx context.Context, c *ledger.Copy) ([]graphiti.Row, error)

	// Has reports whether the store has one of the messages with those names.
	Has(ctx context.Context, group string, names []string) (bool, error)
}

// Backend stores messages. Its calls must end when their context does.
type Backend interface {
	Search(ctx context.Context, groups []string, query string, max int) ([]graphiti.Fact, error)
	Write(ctx context.Context, group string, messages []graphiti.Row) error
	Episodes(ctx context.Context, group string, n int) ([]graphiti.Row, error)
	Forget(ctx context.Context, group string) error
	ForgetEpisodes(ctx context.Context, group string, meant func(*graphiti.Row) bool) ([]string, error)
}

// Options configures a Loop.
type Options struct {
	Ledger      Ledger
	Memory      Backend
	Apart       bool                 // each group has a worker of its own
	StallAfter  func() time.Duration // silence of a worker whose pace is unknown
	Timeout     func() time.Duration // of a call
	OnDelivered func(Delivery)       // called for each settled copy
	Log         *slog.Logger

	// OnSeen is called with the listed messages of a turn before it is marked as delivered.
	OnSeen func(group string, episodes []graphiti.Row)
}

// Delivery is the result of copying one turn to one group.
type Delivery struct {
	Trace    string // trace ID of the turn
	Turn     string
	Group    string
	Began    time.Time // send time
	Verified bool      // the group showed the turn
	Err      error     // why the turn is not stored
}
