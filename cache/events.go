package cache

import (
	"context"
	"encoding/hex"
)

// Replicas publish what they store and drop as events: each can go on repeating
// blocks while Redis is down. An event begins with its kind.
const (
	eventDecision = "block " // its key in hex, and the decision as it is kept
	eventLink     = "link "  // its fingerprint in hex, and the session
	eventDrop     = "drop "  // a group whose cached searches are to be dropped

	// EventGeneration says that a forget has begun or ended.
	EventGeneration = "generation"

	// EventProofs says that an operator has confirmed a registered person, with
	// the keys and identities that they have now.
	EventProofs = "proofs"
)

// Apply applies an event of another replica to what this one has in RAM.
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
		s.Sessions.recent.Add(key, link{session: rest})
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

// Apply drops what this replica has found in a group that another one has dropped.
func (r *Recall[V]) Apply(event string) {
	if len(event) > len(eventDrop) && event[:len(eventDrop)] == eventDrop {
		r.counter(event[len(eventDrop):]).Add(1)
	}
}
