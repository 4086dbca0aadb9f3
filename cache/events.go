package cache

import (
	"context"
	"encoding/hex"
)

// Replicas publish what they keep and drop, so that each of them goes on repeating
// blocks while Redis is down. An event begins with its kind.
const (
	eventDecision = "block " // its key in hex, and the decision as it is kept
	eventLink     = "link "  // its fingerprint in hex, and the session
	eventDrop     = "drop "  // a group whose cached searches are to be dropped

	// EventGeneration says that something is to be forgotten, or is.
	EventGeneration = "generation"

	// EventProofs says that the memory of a registered person was given to the
	// keys and identities that they have now.
	EventProofs = "proofs"
)

// Apply takes over what another replica keeps.
func (s *State) Apply(ctx context.Context, event string) error {
	if event == EventGeneration {
		return s.Generations.Refresh(ctx)
	}
	if key, rest, ok := keyed(event, eventDecision); ok {
		d, err := parseDecision(rest)
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

// keyed takes an event of a kind apart.
func keyed(event, kind string) (key [16]byte, rest string, ok bool) {
	n := len(kind) + hex.EncodedLen(len(key))
	if len(event) < n || event[:len(kind)] != kind {
		return key, "", false
	}
	_, err := hex.Decode(key[:], []byte(event[len(kind):n]))
	return key, event[n:], err == nil
}

// Apply drops what was found in a group that another replica has dropped.
func (r *Recall[V]) Apply(event string) {
	if len(event) > len(eventDrop) && event[:len(eventDrop)] == eventDrop {
		r.counter(event[len(eventDrop):]).Add(1)
	}
}
