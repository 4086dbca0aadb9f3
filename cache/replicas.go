package cache

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	_ "embed"

	"github.com/graphiti-proxy/graphiti-proxy/cache/redis"
)

// replicas is the store that several processes share. What it keeps ends by
// itself, ttl after it came in.
//
//	accepted               tenants whose credentials were accepted, by the day; the last ones stay
//	block:<key>            a block, as JSON
//	blocks:<group>         the keys of blocks that hold facts of a group
//	cleared:<mark>         when a group, or a session, was forgotten
//	emptied                keys of blocks that were emptied, by when they end
//	link:<fingerprint>     a session
//	pending:<fingerprint>  the session of a conversation without an answer
//	snapshot:<session>     a session's short-term memory
//	tombstones             groups, and what was to be forgotten in each
//	snapshots:<mark>       the keys of snapshots that hold turns of a group, or of a session
type replicas struct {
	db  *redis.DB
	ttl time.Duration
}

var (
	//go:embed block_keep.lua
	keepSource string
	//go:embed block_empty.lua
	emptySource string
	//go:embed snapshot_save.lua
	saveSource string

	keepScript  = redis.NewScript(keepSource)
	emptyScript = redis.NewScript(emptySource)
	saveScript  = redis.NewScript(saveSource)
)

// storedBlock is a block as it is kept.
type storedBlock struct {
	Text  string `json:"t"`
	Facts int    `json:"f"`
	Since int64  `json:"s,omitempty,string"` // Unix microseconds, by the server's clock; scripts would round a number
}

func (r *replicas) shared() bool { return true }
func (r *replicas) close() error { return nil }

func named(kind string, key [16]byte) string { return redis.Key(kind, hex.EncodeToString(key[:])) }

// read calls found for those of some keys that are there.
func (r *replicas) read(ctx context.Context, kind string, keys [][16]byte, found func(int, string) error) error {
	names := make([]string, len(keys))
	for i := range keys {
		names[i] = named(kind, keys[i])
	}
	return r.db.Do(ctx, func(ctx context.Context, c redis.Cmdable) error {
		values, err := c.MGet(ctx, names...).Result()
		if err != nil {
			return err
		}
		for i, v := range values {
			if text, ok := v.(string); ok {
				if err := found(i, text); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

func (r *replicas) readBlocks(ctx context.Context, keys [][16]byte, found func(int, block)) error {
	return r.read(ctx, "block", keys, func(i int, text string) error {
		b, err := r.parseBlock(text)
		if err == nil {
			found(i, b)
		}
		return err
	})
}

func (r *replicas) parseBlock(text string) (block, error) {
	var s storedBlock
	if err := json.Unmarshal([]byte(text), &s); err != nil {
		return block{}, fmt.Errorf("read block: %w", err)
	}
	b := block{text: s.Text, facts: s.Facts, known: true}
	if s.Since > 0 {
		b.since = r.db.Here(time.UnixMicro(s.Since))
	}
	return b, nil
}

func (r *replicas) keepBlock(ctx context.Context, key [16]byte, b block, groups []string) (kept block, err error) {
	if !r.db.Settled() {
		return block{}, redis.ErrDown
	}
	// What is stored after the request has gone without would change the
	// conversation's beginning.
	deadline, ok := ctx.Deadline()
	if !ok {
		deadline = time.Now().Add(time.Second)
	}
	before, err := r.db.At(ctx, deadline)
	if err != nil {
		return block{}, err
	}
	since := before.Add(-deadline.Sub(b.since)).UnixMicro()
	var args []any
	for _, b := range []block{b, b.without()} {
		body, err := json.Marshal(storedBlock{b.text, b.facts, since})
		if err != nil {
			return block{}, err
		}
		args = append(args, string(body), newsOfBlock+hex.EncodeToString(key[:])+string(body))
	}
	args = append(args, since, r.ttl.Milliseconds(), redis.Key(News), redis.NewsKept, before.UnixMilli())
	keys := keysOf(named("block", key), "blocks", groups)
	for _, g := range groups {
		keys = append(keys, redis.Key("cleared", g))
	}
	err = r.db.Do(ctx, func(ctx context.Context, c redis.Cmdable) error {
		text, err := keepScript.Run(ctx, c, keys, args...).Text()
		if err == nil {
			kept, err = r.parseBlock(text)
		}
		return err
	})
	return kept, err
}

// keysOf are the keys for a thing and the sets of its groups in which it is
// listed.
func keysOf(name, kind string, groups []string) []string {
	keys := []string{name}
	for _, g := range groups {
		keys = append(keys, redis.Key(kind, g))
	}
	return keys
}

// setCleared notes when something was forgotten.
func (r *replicas) setCleared(what string) error {
	now, err := r.db.At(context.Background(), time.Now())
	if err != nil {
		return err
	}
	return r.db.Do(context.Background(), func(ctx context.Context, c redis.Cmdable) error {
		return c.Set(ctx, redis.Key("cleared", what), now.UnixMicro(), r.ttl).Err()
	})
}

func (r *replicas) emptyBlock(key [16]byte) error {
	_, err := r.empty([]string{named("block", key)})
	return errors.Join(err, r.unsay([]string{named("block", key)}))
}

func (r *replicas) empty(keys []string) (n int, err error) {
	err = r.db.Do(context.Background(), func(ctx context.Context, c redis.Cmdable) error {
		n, err = emptyScript.Run(ctx, c, append([]string{redis.Key("emptied")}, keys...), time.Now().UnixMilli()).Int()
		return err
	})
	return n, err
}

// batch bounds what one call works on.
const batch = 500

func (r *replicas) forgetBlocks(group string) (n int, err error) {
	if err := r.setCleared(group); err != nil {
		return 0, err
	}
	listed, err := r.listed("blocks", group)
	if err != nil || len(listed) == 0 {
		return 0, err
	}
	if err := r.unsay(listed); err != nil {
		return 0, err
	}
	err = r.members("blocks", group, func(keys []string) error {
		emptied, err := r.empty(keys)
		n += emptied
		return err
	})
	return n, err
}

// unsay takes what was told of blocks out of the news.
func (r *replicas) unsay(blocks []string) error {
	meant := make(map[string]bool, len(blocks))
	for _, name := range blocks {
		meant[newsOfBlock+strings.TrimPrefix(name, redis.Key("block", ""))] = true
	}
	return r.db.Unsay(context.Background(), News, func(news string) bool {
		n := len(newsOfBlock) + 2*len([16]byte{})
		return len(news) >= n && meant[news[:n]]
	})
}

func (r *replicas) listed(kind, group string) (all []string, err error) {
	err = r.db.Do(context.Background(), func(ctx context.Context, c redis.Cmdable) error {
		all, err = c.SMembers(ctx, redis.Key(kind, group)).Result()
		return err
	})
	return all, err
}

// members calls f for what a group's set holds, some at a time, and removes
// the set.
func (r *replicas) members(kind, group string, f func([]string) error) error {
	set := redis.Key(kind, group)
	all, err := r.listed(kind, group)
	for len(all) > 0 && err == nil {
		n := min(batch, len(all))
		if err = f(all[:n]); err == nil {
			done := all[:n]
			err = r.db.Do(context.Background(), func(ctx context.Context, c redis.Cmdable) error { return c.SRem(ctx, set, done).Err() })
		}
		all = all[n:]
	}
	return err
}

func (r *replicas) countEmptied(ctx context.Context) (n int, err error) {
	err = r.db.Do(ctx, func(ctx context.Context, c redis.Cmdable) error {
		if err := c.ZRemRangeByScore(ctx, redis.Key("emptied"), "-inf", fmt.Sprint(time.Now().UnixMilli())).Err(); err != nil {
			return err
		}
		all, err := c.ZCard(ctx, redis.Key("emptied")).Result()
		n = int(all)
		return err
	})
	return n, err
}

func (r *replicas) readLinks(ctx context.Context, fingerprints [][16]byte, found func(int, string)) error {
	return r.read(ctx, "link", fingerprints, func(i int, session string) error { found(i, session); return nil })
}

func (r *replicas) putLink(ctx context.Context, fingerprint [16]byte, session string) error {
	return r.db.Do(ctx, func(ctx context.Context, c redis.Cmdable) error {
		p := c.Pipeline()
		r.link(ctx, p, fingerprint, session)
		_, err := p.Exec(ctx)
		return err
	})
}

func (r *replicas) putLinkLater(fingerprint [16]byte, session string) {
	r.db.Later(func(ctx context.Context, c redis.Cmdable) { r.link(ctx, c, fingerprint, session) })
}

// link is for a pipeline, whose end says whether it went well.
func (r *replicas) link(ctx context.Context, c redis.Cmdable, fingerprint [16]byte, session string) {
	c.Set(ctx, named("link", fingerprint), session, r.ttl)
	_ = redis.Tell(ctx, c, News, newsOfLink+hex.EncodeToString(fingerprint[:])+session)
}

func (r *replicas) readPending(ctx context.Context, fingerprints [][16]byte, found func(int, string)) error {
	return r.read(ctx, "pending", fingerprints, func(i int, session string) error { found(i, session); return nil })
}

// pendingWait bounds what a request waits until others can find its
// conversation.
const pendingWait = 100 * time.Millisecond

// setPending waits: the next request of the conversation may be with another
// replica before a queue is empty.
func (r *replicas) setPending(ctx context.Context, fingerprint [16]byte, session string, until time.Time) {
	ctx, cancel := context.WithTimeout(ctx, pendingWait)
	defer cancel()
	// Should it fail, others take the conversation for a new one.
	_ = r.db.Do(ctx, func(ctx context.Context, c redis.Cmdable) error {
		return c.Set(ctx, named("pending", fingerprint), session, time.Until(until)).Err()
	})
}

func (r *replicas) endPendingLater(fingerprint [16]byte) {
	r.db.Later(func(ctx context.Context, c redis.Cmdable) { c.Del(ctx, named("pending", fingerprint)) })
}

func (r *replicas) readSnapshot(ctx context.Context, session string) (body []byte, err error) {
	err = r.db.Do(ctx, func(ctx context.Context, c redis.Cmdable) error {
		body, err = c.Get(ctx, redis.Key("snapshot", session)).Bytes()
		if errors.Is(err, redis.Nil) {
			return nil
		}
		return err
	})
	return body, err
}

func (r *replicas) saveSnapshotLater(session string, body []byte, since time.Time, marks []string) {
	there, err := r.db.At(context.Background(), since)
	if err != nil {
		return // Redis is down
	}
	keys := keysOf(redis.Key("snapshot", session), "snapshots", marks)
	for _, m := range marks {
		keys = append(keys, redis.Key("cleared", m))
	}
	// As a whole: what stands in a queue of calls cannot be sent once more.
	r.db.Later(func(ctx context.Context, c redis.Cmdable) {
		saveScript.Eval(ctx, c, keys, body, there.UnixMicro(), r.ttl.Milliseconds())
	})
}

func (r *replicas) eachSnapshot(ctx context.Context, marks []string, f func([]byte) error) error {
	sets := make([]string, len(marks))
	for i, m := range marks {
		sets[i] = redis.Key("snapshots", m)
	}
	var all []string
	err := r.db.Do(ctx, func(ctx context.Context, c redis.Cmdable) (err error) {
		all, err = c.SInter(ctx, sets...).Result()
		return err
	})
	for _, name := range all {
		var body []byte
		if err == nil {
			err = r.db.Do(ctx, func(ctx context.Context, c redis.Cmdable) error {
				body, err = c.Get(ctx, name).Bytes()
				if errors.Is(err, redis.Nil) {
					return nil
				}
				return err
			})
		}
		if err == nil && body != nil {
			err = f(body)
		}
	}
	return err
}

func (r *replicas) readAccepted(ctx context.Context, tenant string) (day int64, err error) {
	err = r.db.Do(ctx, func(ctx context.Context, c redis.Cmdable) error {
		score, err := c.ZScore(ctx, redis.Key("accepted"), tenant).Result()
		if errors.Is(err, redis.Nil) {
			return nil
		}
		day = int64(score)
		return err
	})
	return day, err
}

func (r *replicas) acceptLater(tenant string, day int64) {
	r.db.Later(func(ctx context.Context, c redis.Cmdable) {
		c.ZAdd(ctx, redis.Key("accepted"), redis.Z{Score: float64(day), Member: tenant})
		c.ZRemRangeByRank(ctx, redis.Key("accepted"), 0, -maxTenants-1)
	})
}

func (r *replicas) forgetSnapshots(mark string) error {
	if err := r.setCleared(mark); err != nil {
		return err
	}
	return r.members("snapshots", mark, func(keys []string) error {
		return r.db.Do(context.Background(), func(ctx context.Context, c redis.Cmdable) error { return c.Del(ctx, keys...).Err() })
	})
}
