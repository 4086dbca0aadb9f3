package embedded

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
)

const (
	embedBatch   = 64
	embedTimeout = 30 * time.Second
	embedRetry   = time.Minute // at most, after a failure

	maxCompared = 10_000   // newest messages of a group
	maxHeld     = 64 << 20 // bytes of vectors in RAM, over all groups
)

// vectors finds messages by their meaning. If the endpoint is slow or down, it finds no
// message, and words alone count. It is safe for concurrent use.
type vectors struct {
	db     *sqlite.DB
	o      Embedding
	client *http.Client
	log    *slog.Logger
	wake   chan struct{}
	stop   context.CancelFunc
	done   chan struct{}

	mu     sync.Mutex // guards the fields below
	groups map[int64]*groupVectors
	held   int

	routine [][]int8 // vectors of routineRequests; nil until the endpoint has returned them

	paused atomic.Bool // no text is sent to the endpoint
}

// groupVectors are the vectors of a group's newest messages.
type groupVectors struct {
	places []int64
	vecs   [][]int8
	used   time.Time

	measure sync.Once
	floor   float64 // likeness that a message must exceed; set by measure
}

// startVectors starts to embed messages without a vector, in the background.
func startVectors(db *sqlite.DB, o Embedding, log *slog.Logger) (*vectors, error) {
	ctx, cancel := context.WithCancel(context.Background())
	v := &vectors{
		db: db, o: o, client: &http.Client{}, log: log, wake: make(chan struct{}, 1), stop: cancel, done: make(chan struct{}),
		groups: make(map[int64]*groupVectors),
	}
	err := db.Write(ctx, func(tx *sqlite.Tx) error {
		for _, q := range []string{
			"DELETE FROM vectors WHERE model <> ?1", // of another model: they cannot be compared
			"INSERT OR IGNORE INTO unread (id) SELECT id FROM messages WHERE id NOT IN (SELECT id FROM vectors WHERE model = ?1)",
		} {
			if _, err := tx.Exec(q, o.Model); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		cancel()
		return nil, fmt.Errorf("prepare embeddings: %w", err)
	}
	// Ends with close.
	go v.run(ctx)
	return v, nil
}

// more wakes run, because there may be messages to embed.
func (v *vectors) more() {
	select {
	case v.wake <- struct{}{}:
	default:
	}
}

// pause stops or resumes requests to the endpoint.
func (v *vectors) pause(on bool) {
	v.paused.Store(on)
	v.more()
}

func (v *vectors) close() {
	v.stop()
	<-v.done
	v.client.CloseIdleConnections()
}

func (v *vectors) run(ctx context.Context) {
	defer close(v.done)
	wait := time.Second
	for {
		n, err := v.some(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			v.log.Warn("messages cannot be embedded; they are found by their words meanwhile", "error", err, "again_in", wait)
			select {
			case <-ctx.Done():
				return
			case <-time.After(wait):
			}
			wait = min(2*wait, embedRetry)
			continue
		case n > 0:
			wait = time.Second
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-v.wake:
		}
	}
}

// some embeds one batch of messages, and returns its size.
func (v *vectors) some(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, embedTimeout)
	defer cancel()
	var ids []int64
	var texts, names []string
	const unread = "SELECT u.id, coalesce(m.content, ''), coalesce(m.name, '') FROM unread u LEFT JOIN messages m ON m.id = u.id LIMIT ?"
	err := v.db.Each(ctx, unread, []any{embedBatch}, func(scan func(...any) error) error {
		var id int64
		var content, name string
		err := scan(&id, &content, &name)
		ids, texts, names = append(ids, id), append(texts, cmp.Or(plain(content), " ")), append(names, name)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("find what to embed: %w", err)
	}
	if v.paused.Load() { // checked now: messages from after the pause are not sent
		return 0, nil
	}
	if err := v.learnRoutine(ctx); err != nil || len(ids) == 0 {
		return 0, err
	}
	vecs, err := v.o.embed(ctx, v.client, texts)
	if err != nil {
		return 0, err
	}
	err = v.db.Write(ctx, func(tx *sqlite.Tx) error {
		for i, id := range ids {
			// A message deleted in the meantime remains deleted, and its id may now belong
			// to another message.
			if _, err := tx.Exec("INSERT OR REPLACE INTO vectors (id, model, vec) SELECT ?, ?, ? WHERE EXISTS (SELECT 1 FROM messages WHERE id = ?1 AND name = ?4)",
				id, v.o.Model, bytesOf(vecs[i]), names[i]); err != nil {
				return err
			}
			if _, err := tx.Exec("DELETE FROM unread WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM messages WHERE id = ?1 AND name <> ?2)", id, names[i]); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, fmt.Errorf("keep embeddings: %w", err)
	}
	v.mu.Lock()
	for _, id := range ids {
		v.dropLocked(id >> placeBits)
	}
	v.mu.Unlock()
	return len(ids), nil
}

func (v *vectors) dropLocked(group int64) {
	if g := v.groups[group]; g != nil {
		v.held -= g.size()
		delete(v.groups, group)
	}
}

func (g *groupVectors) size() int {
	n := 0
	for _, vec := range g.vecs {
		n += len(vec) + 48
	}
	return n
}

// of returns a group's vectors, from RAM if possible.
func (v *vectors) of(ctx context.Context, group int64) (*groupVectors, error) {
	v.mu.Lock()
	g := v.groups[group]
	if g != nil {
		g.used = time.Now()
	}
	v.mu.Unlock()
	if g != nil {
		return g, nil
	}
	first := group << placeBits
	g = &groupVectors{used: time.Now()}
	const query = "SELECT id & 4294967295, vec FROM vectors WHERE id BETWEEN ? AND ? ORDER BY id DESC LIMIT ?"
	err := v.db.Each(ctx, query, []any{first, first | maxPlace, maxCompared}, func(scan func(...any) error) error {
		var place int64
		var b []byte
		err := scan(&place, &b)
		g.places, g.vecs = append(g.places, place), append(g.vecs, int8sOf(b))
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read embeddings: %w", err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.dropLocked(group)
	v.groups[group] = g
	v.held += g.size()
	for v.held > maxHeld && len(v.groups) > 1 { // drop the one used longest ago
		var oldest int64
		for id, o := range v.groups {
			if o != g && (oldest == 0 || o.used.Before(v.groups[oldest].used)) {
				oldest = id
			}
		}
		v.dropLocked(oldest)
	}
	return g, nil
}

// forget drops a group's vectors from RAM.
func (v *vectors) forget(group int64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.dropLocked(group)
}

func bytesOf(v []int8) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v))
}
func int8sOf(b []byte) []int8 {
	return unsafe.Slice((*int8)(unsafe.Pointer(unsafe.SliceData(b))), len(b))
}
