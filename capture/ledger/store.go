package ledger

import (
	"context"
)

// Copies is the part of a Ledger that copies turns to Graphiti. One process uses it at a time: a
// write fails without the lease. It changes only a copy that is waiting or sent: a forgotten turn
// stays forgotten.
type Copies interface {
	// Waiting returns the groups with waiting copies.
	Waiting(ctx context.Context) (groups []string, err error)

	// Next returns the first n waiting copies of a group, or without one of all groups: in the
	// order of arrival, those from histories last. A group that was forgotten has none until
	// Graphiti has deleted it, which would delete them, too.
	Next(ctx context.Context, group string, n int) ([]Copy, error)

	// Sent returns the sent copies in the order of sending.
	Sent(ctx context.Context) ([]Copy, error)

	// MarkSent marks a copy as sent, before it is sent, and sets its position and its number of
	// sends. ok is false if it is settled.
	MarkSent(c *Copy) (ok bool, err error)

	// Requeue makes a copy wait, with its number of losses.
	Requeue(c *Copy, reason string) error

	// MarkDelivered settles a copy; verified reports whether Graphiti lists it.
	MarkDelivered(c *Copy, verified bool) error

	// MarkDead gives a copy up, with its number of losses, until Retry.
	MarkDead(c *Copy, reason string) error

	// Withdrawn returns the forgotten parts of a group, or of all, that Graphiti may have.
	Withdrawn(ctx context.Context, group string) ([]Withdrawn, error)

	// Settle deletes rows of Withdrawn.
	Settle(list []Withdrawn) error
}

// Holds stores turns outside of all groups.
type Holds interface {
	Hold(h *Held) error
	EachHeld(key string, f func(h *Held) error) error
	Unhold(key string) error
}

var (
	_ Copies = (*Ledger)(nil)
	_ Holds  = (*Ledger)(nil)
)
