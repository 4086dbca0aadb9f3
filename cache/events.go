package cache

import (
	"context"
	"encoding/hex"
)

// Replicas publish stored and dropped data as events, so that each can repeat blocks while
// Redis is down. An event begins with its kind.
const (
	eventDecision = "block " // key in hex, and the stored decision
	eventLink     = "link "  // fingerprint in hex, and the session
	eventDrop     = "drop "  // group with outdated cached searches

	// EventGeneration announces the start or the end of a forget.
	EventGeneration = "generation"

	// EventProofs announces that an operator has confirmed a registered person with the
	// current keys and identities.
	EventProofs = "proofs"
)

// Apply applies another replica's event to the data in RAM.
func (s *State) Apply(ctx context.Context, event string) error {
	if event == EventGeneration {
		return s.Generations.Refresh(ctx)
	}
	if key, rest, ok := keyed(event, eventDecision); ok {
		d, err := parseDecision([]byte(rest), false)
		if err != nil {
			return err
		}
		s.Decisions.remember(key, d, s.Generations.Now())
	}
	if key, rest, ok := keyed(event, eventLink); ok {
		s.Sessions.remember(key, rest)
	}
	return nil
}

// keyed splits an event of a kind into its key and the rest.
func keyed(event, kind string) (key [16]byte, rest string, ok bool) {
	n := len(kind) + hex.EncodedLen(len(key))
	if len(event) < n || event[:len(kind)] != kind {
		return key, "", false
	}
	_, err := hex.Decode(key[:], []byte(event[len(kind):n]))
	return key, event[n:], err == nil
}

// Apply drops the cached searches of a group that another replica has dropped.
func (r *Recall[V]) Apply(event string) {
	if len(event) > len(eventDrop) && event[:len(eventDrop)] == eventDrop {
		r.counter(event[len(eventDrop):]).Add(1)
	}
}
