package cache

import (
	"context"
	"encoding/hex"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/redis"
)

// sessionRedis keeps sessions where replicas share them.
type sessionRedis struct{ replicas }

func (r sessionRedis) readLinks(ctx context.Context, fingerprints [][16]byte, found func(int, string)) error {
	return r.read(ctx, "link", fingerprints, func(i int, session string) error { found(i, session); return nil })
}

func (r sessionRedis) putLink(ctx context.Context, fingerprint [16]byte, session string) error {
	return r.db.Do(ctx, func(ctx context.Context, c redis.Cmdable) error {
		p := c.Pipeline()
		r.link(ctx, p, fingerprint, session)
		_, err := p.Exec(ctx)
		return err
	})
}

func (r sessionRedis) putLinkAsync(fingerprint [16]byte, session string) {
	r.db.Async(func(ctx context.Context, c redis.Cmdable) { r.link(ctx, c, fingerprint, session) })
}

// link adds the two calls to a pipeline, whose Exec returns the error.
func (r sessionRedis) link(ctx context.Context, c redis.Cmdable, fingerprint [16]byte, session string) {
	c.Set(ctx, named("link", fingerprint), session, r.ttl)
	redis.Publish(ctx, c, eventLink+hex.EncodeToString(fingerprint[:])+session)
}

func (r sessionRedis) readPending(ctx context.Context, fingerprints [][16]byte, found func(int, string)) error {
	return r.read(ctx, "pending", fingerprints, func(i int, session string) error { found(i, session); return nil })
}

// pendingWait bounds how long a request waits until other replicas can find its
// conversation.
const pendingWait = 100 * time.Millisecond

// setPending waits: the next request of the conversation may be with another
// replica before a queue is empty.
func (r sessionRedis) setPending(ctx context.Context, fingerprint [16]byte, session string, until time.Time) {
	ctx, cancel := context.WithTimeout(ctx, pendingWait)
	defer cancel()
	// Should that fail, other replicas take the conversation for a new one.
	_ = r.db.Do(ctx, func(ctx context.Context, c redis.Cmdable) error {
		return c.Set(ctx, named("pending", fingerprint), session, time.Until(until)).Err()
	})
}

func (r sessionRedis) endPendingAsync(fingerprint [16]byte) {
	r.db.Async(func(ctx context.Context, c redis.Cmdable) { c.Del(ctx, named("pending", fingerprint)) })
}
