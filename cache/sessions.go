package cache

import (
	"context"
	"encoding/binary"
	"fmt"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

const (
	// sessionsInRAM is the most fingerprints in RAM, at some 200 bytes each.
	sessionsInRAM = 200_000

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
	store  store
	shared bool // replicas write to the store, so a fingerprint may get a session at any time
	recent *lru.Cache[[16]byte, link]
}

func newSessions(s store, shared bool) *Sessions {
	recent, _ := lru.New[[16]byte, link](sessionsInRAM) // fails only for a size of 0
	return &Sessions{store: s, shared: shared, recent: recent}
}

type link struct {
	session string    // "" if the store does not know the fingerprint
	until   time.Time // zero means forever
}

// Pending returns the session of the first fingerprint with an unanswered conversation.
func (s *Sessions) Pending(ctx context.Context, fingerprints ...[16]byte) (string, bool) {
	if s.shared && len(fingerprints) > 0 {
		// Another replica may have seen the answer.
		asked := fingerprints[:min(len(fingerprints), maxPrefixes)]
		first, session := len(asked), ""
		err := s.store.get(ctx, pendingKind, keysOf(asked), func(i int, value []byte) error {
			if i < first {
				first, session = i, string(value[min(len(value), untilLen):])
			}
			return nil
		})
		if err == nil {
			return session, session != ""
		}
	}
	for _, f := range fingerprints {
		l, ok := s.recent.Get(f)
		if ok && l.session != "" && (l.until.IsZero() || time.Now().Before(l.until)) {
			return l.session, true
		}
	}
	return "", false
}

// SetPending stores a conversation without an answer for pendingFor. With a file it does
// not block; with Redis it waits up to pendingWait, because the next request may reach
// another replica.
func (s *Sessions) SetPending(ctx context.Context, fingerprint [16]byte, session string) {
	until := time.Now().Add(pendingFor)
	s.remember(fingerprint, session, until)
	value := append(binary.BigEndian.AppendUint64(nil, uint64(until.Unix())), session...)
	r := &record{kind: pendingKind, key: fingerprint[:], value: value}
	if !s.shared {
		s.store.writeAsync(r)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, pendingWait)
	defer cancel()
	_ = s.store.write(ctx, r) // on error, other replicas treat the conversation as new
}

// loadPending reads the conversations that an earlier process left without an answer: their
// clients will retry.
func (s *Sessions) loadPending(ctx context.Context) error {
	err := s.store.list(ctx, pendingKind, []string{""}, func(_ string, key, value []byte) error {
		if len(key) == 16 && len(value) > untilLen {
			until := time.Unix(int64(binary.BigEndian.Uint64(value)), 0)
			s.remember([16]byte(key), string(value[untilLen:]), until)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read sessions: %w", err)
	}
	return nil
}

func (s *Sessions) remember(fingerprint [16]byte, session string, until time.Time) {
	s.recent.Add(fingerprint, link{session: session, until: until})
}

// EndPending removes an answered conversation: another one with the same beginning is then
// new.
func (s *Sessions) EndPending(fingerprint [16]byte) {
	l, ok := s.recent.Peek(fingerprint)
	s.recent.Remove(fingerprint)
	if s.shared || ok && !l.until.IsZero() { // most have had an answer before
		s.store.writeAsync(&record{kind: pendingKind, key: fingerprint[:]})
	}
}

// Find returns the session of the first known fingerprint.
func (s *Sessions) Find(ctx context.Context, fingerprints [][16]byte) (string, bool, error) {
	missing := make([][16]byte, 0, min(len(fingerprints), maxPrefixes))
	older := "" // first cached session after a cache miss
	for i := range fingerprints {
		l, ok := s.recent.Get(fingerprints[i])
		if ok && l.session != "" && l.until.IsZero() && len(missing) == 0 {
			return l.session, true, nil
		}
		if ok && older == "" && l.until.IsZero() {
			older = l.session
		}
		if (!ok || l.session != "") && len(missing) < maxPrefixes {
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
			s.recent.ContainsOrAdd(f, link{session: known[i]})
			return known[i], true, nil
		}
		if !s.shared {
			s.recent.ContainsOrAdd(f, link{})
		}
	}
	return "", false, nil
}

// Put stores the session of conversations that begin with one of the fingerprints. If the
// process ends at once, requests still find the session by its earlier fingerprints.
func (s *Sessions) Put(ctx context.Context, session string, fingerprints ...[16]byte) error {
	records := make([]*record, len(fingerprints))
	for i, f := range fingerprints {
		s.recent.Add(f, link{session: session})
		records[i] = linkOf(f, session)
	}
	if !s.shared && s.store.writeAsync(records...) { // it shares a commit
		return nil
	}
	if err := s.store.write(ctx, records...); err != nil {
		return fmt.Errorf("remember session: %w", err)
	}
	return nil
}

// PutAsync is Put without waiting for the store. Writes keep their order.
func (s *Sessions) PutAsync(fingerprint [16]byte, session string) {
	s.recent.Add(fingerprint, link{session: session})
	s.store.writeAsync(linkOf(fingerprint, session))
}

func linkOf(fingerprint [16]byte, session string) *record {
	return &record{kind: linkKind, key: fingerprint[:], value: []byte(session)}
}
