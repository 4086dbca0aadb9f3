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
	later  func(func(*sqlite.Tx) error) // db.Later
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

// SetPending remembers a conversation that has no answer yet, for a while. It
// does not wait for the file, and is there before what is written after it.
func (c *Chain) SetPending(fingerprint [16]byte, session string) {
	until := time.Now().Add(pendingFor)
	c.recent.put(fingerprint, link{session: session, until: until}, costOfLink)
	c.later(func(tx *sqlite.Tx) error {
		_, err := tx.Exec("INSERT INTO pending VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET session = excluded.session, until = excluded.until",
			fingerprint[:], session, until.Unix())
		return err
	})
}

// EndPending forgets it: whoever begins alike from now on begins anew.
func (c *Chain) EndPending(fingerprint [16]byte) {
	c.recent.drop(fingerprint)
	c.later(func(tx *sqlite.Tx) error {
		_, err := tx.Exec("DELETE FROM pending WHERE fingerprint = ?", fingerprint[:])
		return err
	})
}

// maxPending bounds what is read of conversations without an answer.
const maxPending = 10000

// loadPending reads the conversations that an earlier process left without an
// answer: their clients will ask again.
func (c *Chain) loadPending(now time.Time) error {
	rows, err := c.db.Query(context.Background(), "SELECT fingerprint, session, until FROM pending WHERE until > ? ORDER BY until DESC LIMIT ?", now.Unix(), maxPending)
	if err != nil {
		return fmt.Errorf("read sessions: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var f []byte
		var session string
		var until int64
		if err := rows.Scan(&f, &session, &until); err != nil {
			return fmt.Errorf("read sessions: %w", err)
		}
		if len(f) == 16 {
			c.recent.put([16]byte(f), link{session: session, until: time.Unix(until, 0)}, costOfLink)
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read sessions: %w", err)
	}
	return nil
}

func (c *Chain) sweepPending(now time.Time) {
	c.later(func(tx *sqlite.Tx) error {
		_, err := tx.Exec("DELETE FROM pending WHERE until < ?", now.Unix())
		return err
	})
}

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
			c.recent.putNew(f, link{session: session}, costOfLink)
			return session, true, nil
		}
		c.recent.putNew(f, link{}, costOfLink)
	}
	return "", false, nil
}

// Put remembers that a conversation which begins so belongs to the session.
func (c *Chain) Put(ctx context.Context, fingerprint [16]byte, session string) error {
	c.recent.put(fingerprint, link{session: session}, costOfLink)
	if err := c.db.Write(ctx, putLink(fingerprint, session)); err != nil {
		return fmt.Errorf("remember session: %w", err)
	}
	return nil
}

// PutLater is Put that does not wait for the file. What is written after it
// is not there before it.
func (c *Chain) PutLater(fingerprint [16]byte, session string) {
	c.recent.put(fingerprint, link{session: session}, costOfLink)
	c.later(putLink(fingerprint, session))
}

func putLink(fingerprint [16]byte, session string) func(*sqlite.Tx) error {
	return func(tx *sqlite.Tx) error {
		_, err := tx.Exec("INSERT INTO chain VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET session = excluded.session, born = excluded.born",
			fingerprint[:], session, time.Now().Unix())
		return err
	}
}
