package cache

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/internal/memo"
)

const (
	sessionsInRAM = 8 << 20 // bytes of fingerprints with a session
	linkOverhead  = 150     // bytes of a fingerprint in RAM, besides its session

	// pendingFor is the retention of a conversation without an answer, for its retries and
	// tool rounds.
	pendingFor = 10 * time.Minute

	// maxPrefixes is the most fingerprints of one conversation to look up in the store.
	maxPrefixes = 64

	// pendingWait is how long a request waits until other replicas can find its
	// conversation.
	pendingWait = 100 * time.Millisecond

	// untilLen is the length of the time, in Unix seconds, that precedes the session of a
	// conversation without an answer.
	untilLen = 8
)

// Sessions maps the fingerprint of a conversation's beginning to its session. It is safe
// for concurrent use.
type Sessions struct {
	store  *tables
	recent *memo.LRU[[16]byte, string] // "" if the store does not know the fingerprint
}

// Pending returns the session of the first fingerprint with an unanswered conversation. If
// the store cannot be read, it knows the recent ones of this process.
func (s *Sessions) Pending(ctx context.Context, fingerprints ...[16]byte) (session string, ok bool) {
	asked, now := fingerprints[:min(len(fingerprints), maxPrefixes)], time.Now().Unix()
	first := len(asked)
	err := s.store.get(ctx, pendingKind, keysOf(asked), func(i int, value []byte) error {
		if i < first && len(value) > untilLen && now < int64(binary.BigEndian.Uint64(value)) { // #nosec G115 -- SetPending has written it
			first, session = i, string(value[untilLen:])
		}
		return nil
	})
	for i := 0; err != nil && i < len(asked) && session == ""; i++ {
		session, _ = s.recent.Get(asked[i])
	}
	return session, session != ""
}

// SetPending stores a conversation without an answer for pendingFor. With a file it does
// not block; with a shared store it waits up to pendingWait, because the next request may
// reach another replica.
func (s *Sessions) SetPending(ctx context.Context, fingerprint [16]byte, session string) {
	s.remember(fingerprint, session)
	until := time.Now().Add(pendingFor).Unix()
	r := &record{kind: pendingKind, key: fingerprint[:], value: append(binary.BigEndian.AppendUint64(nil, uint64(until)), session...)} // #nosec G115 -- after 1970
	if s.store.shared == nil {
		s.store.writeAsync(r)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, pendingWait)
	defer cancel()
	_ = s.store.write(ctx, r) // on error, other replicas treat the conversation as new
}

// EndPending removes an answered conversation: another one with the same beginning is then
// new.
func (s *Sessions) EndPending(fingerprint [16]byte) {
	s.recent.Remove(fingerprint)
	s.store.writeAsync(&record{kind: pendingKind, key: fingerprint[:]})
}

func (s *Sessions) remember(fingerprint [16]byte, session string) {
	s.recent.Add(fingerprint, session, linkOverhead+len(session))
}

// rememberNew is remember for a fingerprint without a session in RAM.
func (s *Sessions) rememberNew(fingerprint [16]byte, session string) {
	s.recent.AddOver(fingerprint, session, linkOverhead+len(session), func(string) bool { return false })
}

// Find returns the session of the first known fingerprint.
func (s *Sessions) Find(ctx context.Context, fingerprints [][16]byte) (string, bool, error) {
	missing := make([][16]byte, 0, min(len(fingerprints), maxPrefixes))
	older := "" // first cached session after a cache miss
	for i := range fingerprints {
		session, ok := s.recent.Get(fingerprints[i])
		if session != "" && len(missing) == 0 {
			return session, true, nil
		}
		if older == "" {
			older = session
		}
		if (!ok || session != "") && len(missing) < maxPrefixes {
			missing = append(missing, fingerprints[i])
		}
	}
	if len(missing) == 0 {
		return "", false, nil
	}
	known := make([]string, len(missing))
	err := s.store.get(ctx, linkKind, keysOf(missing), func(i int, value []byte) error { known[i] = string(value); return nil })
	if err != nil {
		if older != "" {
			return older, true, nil
		}
		return "", false, fmt.Errorf("find session: %w", err)
	}
	for i, f := range missing {
		if known[i] != "" {
			s.rememberNew(f, known[i])
			return known[i], true, nil
		}
		if s.store.shared == nil { // else a replica may store one at any time
			s.rememberNew(f, "")
		}
	}
	return "", false, nil
}

// Put stores the session of conversations that begin with one of the fingerprints. If the
// process ends at once, requests still find the session by its earlier fingerprints.
func (s *Sessions) Put(ctx context.Context, session string, fingerprints ...[16]byte) error {
	records := make([]*record, len(fingerprints))
	for i, f := range fingerprints {
		s.remember(f, session)
		records[i] = linkOf(f, session)
	}
	if s.store.shared == nil && s.store.writeAsync(records...) { // it shares a commit
		return nil
	}
	if err := s.store.write(ctx, records...); err != nil {
		return fmt.Errorf("remember session: %w", err)
	}
	return nil
}

// PutAsync is Put without waiting for the store. Writes keep their order.
func (s *Sessions) PutAsync(fingerprint [16]byte, session string) {
	s.remember(fingerprint, session)
	s.store.writeAsync(linkOf(fingerprint, session))
}

func linkOf(fingerprint [16]byte, session string) *record {
	return &record{kind: linkKind, key: fingerprint[:], value: []byte(session)}
}
