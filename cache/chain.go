package cache

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
)

const (
	// linksInMemory bounds one generation of links in memory.
	linksInMemory = 16 << 20
	costOfLink    = 150

	// pendingFor is how long a conversation that has no answer yet is
	// remembered, so that retries and tool rounds find it.
	pendingFor = 10 * time.Minute

	// maxPrefixes bounds how far back the beginning of a conversation is
	// sought in the file.
	maxPrefixes = 64
)

// Chain knows which session a conversation belongs to, by the fingerprint of
// its beginning. It is safe for concurrent use.
type Chain struct {
	db     *sqlite.DB
	recent *recent[[16]byte, link]
}

type link struct {
	session string    // empty: the file has none
	until   time.Time // zero: for good
}

// Pending returns the session of a conversation that has no answer yet.
func (c *Chain) Pending(fingerprint [16]byte) (string, bool) {
	l, ok := c.recent.get(fingerprint)
	if !ok || l.session == "" || !l.until.IsZero() && time.Now().After(l.until) {
		return "", false
	}
	return l.session, true
}

// SetPending remembers a conversation that has no answer yet, for a while and
// in memory only.
func (c *Chain) SetPending(fingerprint [16]byte, session string) {
	c.recent.put(fingerprint, link{session: session, until: time.Now().Add(pendingFor)}, costOfLink)
}

// EndPending forgets it: whoever begins alike from now on begins anew.
func (c *Chain) EndPending(fingerprint [16]byte) { c.recent.drop(fingerprint) }

// Find returns the session of the first of the fingerprints that is known.
func (c *Chain) Find(ctx context.Context, fingerprints [][16]byte) (string, bool, error) {
	missing := make([]any, 0, min(len(fingerprints), maxPrefixes))
	for i := range fingerprints {
		l, ok := c.recent.get(fingerprints[i])
		if ok && l.session != "" && l.until.IsZero() && len(missing) == 0 {
			return l.session, true, nil
		}
		if (!ok || l.session != "") && len(missing) < maxPrefixes {
			missing = append(missing, fingerprints[i][:])
		}
	}
	if len(missing) == 0 {
		return "", false, nil
	}
	rows, err := c.db.Query(ctx,
		"SELECT fingerprint, session FROM chain WHERE fingerprint IN (?"+strings.Repeat(",?", len(missing)-1)+")", missing...)
	if err != nil {
		return "", false, fmt.Errorf("find session: %w", err)
	}
	defer rows.Close()
	known := make(map[[16]byte]string)
	for rows.Next() {
		var f []byte
		var session string
		if err := rows.Scan(&f, &session); err != nil {
			return "", false, fmt.Errorf("find session: %w", err)
		}
		known[[16]byte(f)] = session
	}
	if err := rows.Err(); err != nil {
		return "", false, fmt.Errorf("find session: %w", err)
	}
	for _, m := range missing {
		f := [16]byte(m.([]byte)) //nolint:forcetypeassert // filled above
		if session, ok := known[f]; ok {
			c.recent.put(f, link{session: session}, costOfLink)
			return session, true, nil
		}
		c.recent.put(f, link{}, costOfLink)
	}
	return "", false, nil
}

// Put remembers that a conversation which begins so belongs to the session.
func (c *Chain) Put(ctx context.Context, fingerprint [16]byte, session string) error {
	c.recent.put(fingerprint, link{session: session}, costOfLink)
	if err := c.db.Write(ctx, func(tx *sqlite.Tx) error {
		_, err := tx.Exec("INSERT INTO chain VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET session = excluded.session, born = excluded.born",
			fingerprint[:], session, time.Now().Unix())
		return err
	}); err != nil {
		return fmt.Errorf("remember session: %w", err)
	}
	return nil
}
