package cache

import (
	"context"
	"fmt"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

const (
	// sessionsInMemory bounds the fingerprints in memory, at some 200 bytes each.
	sessionsInMemory = 200_000

	// pendingFor is how long a conversation that has no answer yet is
	// remembered, so that retries and tool rounds find it.
	pendingFor = 10 * time.Minute

	// maxPrefixes bounds how far back the beginning of a conversation is
	// sought in the store.
	maxPrefixes = 64
)

// Sessions knows which session a conversation belongs to, by the fingerprint of
// its beginning. It is safe for concurrent use.
type Sessions struct {
	store  sessionStore
	recent *lru.Cache[[16]byte, link]
}

// sessionStore is where sessions outlive the process. What ends in Later does
// not wait, and is done in its order.
type sessionStore interface {
	// shared reports whether other processes write to it: that something was
	// not there is then not worth remembering.
	shared() bool

	readLinks(ctx context.Context, fingerprints [][16]byte, found func(i int, session string)) error
	putLink(ctx context.Context, fingerprint [16]byte, session string) error
	putLinkLater(fingerprint [16]byte, session string)

	readPending(ctx context.Context, fingerprints [][16]byte, found func(i int, session string)) error
	setPending(ctx context.Context, fingerprint [16]byte, session string, until time.Time)
	endPendingLater(fingerprint [16]byte)
}

func newSessions(s sessionStore) *Sessions {
	recent, _ := lru.New[[16]byte, link](sessionsInMemory) // fails for no size only
	return &Sessions{store: s, recent: recent}
}

type link struct {
	session string    // empty: the store has none
	until   time.Time // zero: for good
}

// Pending returns the session of the first of some conversations that has no
// answer yet.
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

// SetPending remembers a conversation that has no answer yet, for a while. It
// does not wait for a file, and is there before what is stored after it.
func (s *Sessions) SetPending(ctx context.Context, fingerprint [16]byte, session string) {
	until := time.Now().Add(pendingFor)
	s.remember(fingerprint, session, until)
	s.store.setPending(ctx, fingerprint, session, until)
}

func (s *Sessions) remember(fingerprint [16]byte, session string, until time.Time) {
	s.recent.Add(fingerprint, link{session: session, until: until})
}

// EndPending forgets it: a conversation that begins alike from now on is a new one.
func (s *Sessions) EndPending(fingerprint [16]byte) {
	s.recent.Remove(fingerprint)
	s.store.endPendingLater(fingerprint)
}

// Find returns the session of the first of the fingerprints that is known.
func (s *Sessions) Find(ctx context.Context, fingerprints [][16]byte) (string, bool, error) {
	missing := make([][16]byte, 0, min(len(fingerprints), maxPrefixes))
	older := "" // the session of one that is known, behind one that is not
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

// Put remembers that a conversation which begins so belongs to the session.
func (s *Sessions) Put(ctx context.Context, fingerprint [16]byte, session string) error {
	s.recent.Add(fingerprint, link{session: session})
	if err := s.store.putLink(ctx, fingerprint, session); err != nil {
		return fmt.Errorf("remember session: %w", err)
	}
	return nil
}

// PutLater is Put that does not wait for the store. What is stored after it is
// not there before it.
func (s *Sessions) PutLater(fingerprint [16]byte, session string) {
	s.recent.Add(fingerprint, link{session: session})
	s.store.putLinkLater(fingerprint, session)
}
