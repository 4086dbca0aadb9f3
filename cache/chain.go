package cache

import (
	"context"
	"fmt"
	"time"
)

const (
	// linksInMemory bounds one generation of links in memory.
	linksInMemory = 16 << 20
	costOfLink    = 150

	// pendingFor is how long a conversation that has no answer yet is
	// remembered, so that retries and tool rounds find it.
	pendingFor = 10 * time.Minute

	// maxPrefixes bounds how far back the beginning of a conversation is
	// sought in the store.
	maxPrefixes = 64
)

// Chain knows which session a conversation belongs to, by the fingerprint of
// its beginning. It is safe for concurrent use.
type Chain struct {
	store  store
	recent *recent[[16]byte, link]
}

type link struct {
	session string    // empty: the store has none
	until   time.Time // zero: for good
}

// Pending returns the session of the first of some conversations that has no
// answer yet.
func (c *Chain) Pending(ctx context.Context, fingerprints ...[16]byte) (string, bool) {
	if c.store.shared() && len(fingerprints) > 0 {
		// Another replica may have seen the answer.
		asked := fingerprints[:min(len(fingerprints), maxPrefixes)]
		first, session := len(asked), ""
		err := c.store.readPending(ctx, asked, func(i int, of string) {
			if i < first {
				first, session = i, of
			}
		})
		if err == nil {
			return session, session != ""
		}
	}
	for _, f := range fingerprints {
		l, ok := c.recent.get(f)
		if ok && l.session != "" && (l.until.IsZero() || time.Now().Before(l.until)) {
			return l.session, true
		}
	}
	return "", false
}

// SetPending remembers a conversation that has no answer yet, for a while. It
// does not wait for a file, and is there before what is stored after it.
func (c *Chain) SetPending(ctx context.Context, fingerprint [16]byte, session string) {
	until := time.Now().Add(pendingFor)
	c.remember(fingerprint, session, until)
	c.store.setPending(ctx, fingerprint, session, until)
}

func (c *Chain) remember(fingerprint [16]byte, session string, until time.Time) {
	c.recent.put(fingerprint, link{session: session, until: until}, costOfLink)
}

// EndPending forgets it: whoever begins alike from now on begins anew.
func (c *Chain) EndPending(fingerprint [16]byte) {
	c.recent.drop(fingerprint)
	c.store.endPendingLater(fingerprint)
}

// Find returns the session of the first of the fingerprints that is known.
func (c *Chain) Find(ctx context.Context, fingerprints [][16]byte) (string, bool, error) {
	missing := make([][16]byte, 0, min(len(fingerprints), maxPrefixes))
	older := "" // the session of one that is known, behind one that is not
	for i := range fingerprints {
		l, ok := c.recent.get(fingerprints[i])
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
	if err := c.store.readLinks(ctx, missing, func(i int, session string) { known[i] = session }); err != nil {
		if older != "" {
			return older, true, nil
		}
		return "", false, fmt.Errorf("find session: %w", err)
	}
	for i, f := range missing {
		if known[i] != "" {
			c.recent.putNew(f, link{session: known[i]}, costOfLink)
			return known[i], true, nil
		}
		if !c.store.shared() {
			c.recent.putNew(f, link{}, costOfLink)
		}
	}
	return "", false, nil
}

// Put remembers that a conversation which begins so belongs to the session.
func (c *Chain) Put(ctx context.Context, fingerprint [16]byte, session string) error {
	c.recent.put(fingerprint, link{session: session}, costOfLink)
	if err := c.store.putLink(ctx, fingerprint, session); err != nil {
		return fmt.Errorf("remember session: %w", err)
	}
	return nil
}

// PutLater is Put that does not wait for the store. What is stored after it is
// not there before it.
func (c *Chain) PutLater(fingerprint [16]byte, session string) {
	c.recent.put(fingerprint, link{session: session}, costOfLink)
	c.store.putLinkLater(fingerprint, session)
}
