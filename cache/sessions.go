package cache

import (
	"context"
	"fmt"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

const (
	// sessionsInRAM bounds the fingerprints in RAM, at some 200 bytes each.
	sessionsInRAM = 200_000

	// pendingFor is how long a conversation that has no answer yet is
	// remembered, so that retries and tool rounds find it.
	pendingFor = 10 * time.Minute

	// maxPrefixes bounds the fingerprints of one conversation that are looked up
	// in the store.
	maxPrefixes = 64
)

// Sessions knows which session a conversation belongs to, by the fingerprint of
// its beginning. It is safe for concurrent use.
type Sessions struct {
	store  sessionStore
	recent *lru.Cache[[16]byte, link]
}

// sessionStore is where sessions outlive the process. The methods that end with
// Async do not wait; their writes keep their order.
type sessionStore interface {
	// shared reports whether other processes write to it. A fingerprint without
	// a session may then get one at any moment, so that none is not cached.
	shared() bool

	readLinks(ctx context.Context, fingerprints [][16]byte, found func(i int, session string)) error
	putLink(ctx context.Context, fingerprint [16]byte, session string) error
	putLinkAsync(fingerprint [16]byte, session string)

	readPending(ctx context.Context, fingerprints [][16]byte, found func(i int, session string)) error
	setPending(ctx context.Context, fingerprint [16]byte, session string, until time.Time)
	endPendingAsync(fingerprint [16]byte)
}

func newSessions(s sessionStore) *Sessions {
	recent, _ := lru.New[[16]byte, link](sessionsInRAM) // fails for no size only
	return &Sessions{store: s, recent: recent}
}

type link struct {
	session string    // empty: the store has none
	until   time.Time // zero: for good
}

// Pending returns the session of the first of the fingerprints whose conversation
// has no answer yet.
func (s *Sessions) Pending(ctx context.Context, fingerprints ...[16]byte) (string, bool) {
	if s.store.shared() && len(fingerprints) > 0 {
		// Another replica may have seen the answer.
		asked := fingerprints[:min(len(fingerprints), maxPrefixes)]
		first, session := len(asked), ""
		err := s.store.readPending(ctx, asked, func(i int, of string) {
			if i < first {
				first, session = i, of
			}
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

// SetPending remembers a conversation that has no answer yet, for pendingFor. With
// a file it does not wait; with Redis it waits up to pendingWait, because the next
// request may come to another replica.
func (s *Sessions) SetPending(ctx context.Context, fingerprint [16]byte, session string) {
	until := time.Now().Add(pendingFor)
	s.remember(fingerprint, session, until)
	s.store.setPending(ctx, fingerprint, session, until)
}

func (s *Sessions) remember(fingerprint [16]byte, session string, until time.Time) {
	s.recent.Add(fingerprint, link{session: session, until: until})
}

// EndPending removes a conversation that has its answer: another conversation with
// the same beginning is a new one from now on.
func (s *Sessions) EndPending(fingerprint [16]byte) {
	s.recent.Remove(fingerprint)
	s.store.endPendingAsync(fingerprint)
}

// Find returns the session of the first of the fingerprints that is known.
func (s *Sessions) Find(ctx context.Context, fingerprints [][16]byte) (string, bool, error) {
	missing := make([][16]byte, 0, min(len(fingerprints), maxPrefixes))
	older := "" // the first session that is in RAM, behind a fingerprint that is not
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
	if err := s.store.readLinks(ctx, missing, func(i int, session string) { known[i] = session }); err != nil {
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
		if !s.store.shared() {
			s.recent.ContainsOrAdd(f, link{})
		}
	}
	return "", false, nil
}

// Put stores the session of the conversations that begin with a fingerprint.
func (s *Sessions) Put(ctx context.Context, fingerprint [16]byte, session string) error {
	s.recent.Add(fingerprint, link{session: session})
	if err := s.store.putLink(ctx, fingerprint, session); err != nil {
		return fmt.Errorf("remember session: %w", err)
	}
	return nil
}

// PutAsync is Put without waiting for the store. Writes keep their order.
func (s *Sessions) PutAsync(fingerprint [16]byte, session string) {
	s.recent.Add(fingerprint, link{session: session})
	s.store.putLinkAsync(fingerprint, session)
}
