package embedded

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"github.com/graphiti-proxy/graphiti-proxy/cache/database"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/memo"
)

const (
	embedBatch   = 16
	embedTimeout = 30 * time.Second
	embedRetry   = time.Minute // at most, after a failure

	maxCompared = 10_000   // newest messages of a group
	maxHeld     = 64 << 20 // bytes of vectors in RAM, over all groups
)

// encoder computes the vectors of texts.
type encoder struct {
	model string // vectors of different models cannot be compared
	embed func(ctx context.Context, texts []string) ([][]int8, error)
	own   bool // the models of this program
}

// vectors finds statements by their meaning. If the encoder is slow or down, it finds none,
// and words alone count. It is safe for concurrent use.
type vectors struct {
	encoder
	db   database.DB
	log  *slog.Logger
	wake chan struct{}
	stop context.CancelFunc
	done chan struct{}

	asking  chan struct{} // holds a value while a question is embedded
	waiting atomic.Int32  // questions for it
	recent  *recentVectors

	behind  bool  // rows after checked may lack a vector; only run uses both
	checked int64 // id

	groups *memo.LRU[int64, *groupVectors]
	stored atomic.Int64 // batches

	mu   sync.Mutex // guards todo
	todo []int64    // ids of messages without a vector, each added with or after its message

	paused atomic.Bool // no text is encoded
}

// groupVectors are the vectors of a group's newest statements.
type groupVectors struct {
	places []int64
	vecs   [][]int8
}

// startVectors starts to embed messages and facts without a vector, in the background.
func startVectors(db database.DB, by encoder, log *slog.Logger) *vectors {
	ctx, cancel := context.WithCancel(context.Background())
	v := &vectors{
		encoder: by, db: db, log: log, wake: make(chan struct{}, 1), stop: cancel, done: make(chan struct{}),
		asking: make(chan struct{}, 1), recent: newRecentVectors(), groups: memo.NewLRU[int64, *groupVectors](maxHeld), behind: true,
	}
	// Ends with close.
	go v.run(ctx)
	return v
}

// more adds messages to embed, and wakes run.
func (v *vectors) more(ids ...int64) {
	v.mu.Lock()
	v.todo = append(v.todo, ids...)
	v.mu.Unlock()
	select {
	case v.wake <- struct{}{}:
	default:
	}
}

// pause stops or resumes the encoder.
func (v *vectors) pause(on bool) {
	v.paused.Store(on)
	v.more()
}

func (v *vectors) end() {
	v.stop()
	<-v.done
}

func (v *vectors) run(ctx context.Context) {
	defer close(v.done)
	wait := time.Second
	for {
		began := time.Now()
		n, err := v.some(ctx)
		if n == 0 && err == nil && v.behind && !v.paused.Load() {
			err = v.catchUp(ctx)
			n = len(v.wake) // more rows, or the end
		}
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			v.log.Warn("messages cannot be embedded; they are found by their words meanwhile", "error", err, "again_in", wait)
			sleep(ctx, wait)
			wait = min(2*wait, embedRetry)
			continue
		case n > 0:
			wait = time.Second
			if v.own { // rest as long: half of a processor is left to the chats of a busy proxy
				sleep(ctx, time.Since(began))
			}
			continue
		}
		select {
		case <-ctx.Done():
			return
		case <-v.wake:
		}
	}
}

// sleep waits for a time, or until the context ends.
func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
}

// missingAtOnce bounds the rows of catchUp.
const missingAtOnce = 1000

// catchUp adds the next rows without a vector of this model: another process has ended before it
// computed them, or there was no model. It reads all rows once, a few at a time, because a shared
// database may have millions.
func (v *vectors) catchUp(ctx context.Context) error {
	const missing = `SELECT id FROM (SELECT id FROM messages WHERE id > ?1 UNION ALL SELECT id FROM facts WHERE id > ?1) AS a
		WHERE NOT EXISTS (SELECT 1 FROM vectors v WHERE v.id = a.id AND v.model = ?2) ORDER BY id LIMIT ?3`
	var ids []int64
	err := v.db.Each(ctx, missing, []any{v.checked, v.model, missingAtOnce}, func(scan func(...any) error) error {
		var id int64
		err := scan(&id)
		ids = append(ids, id)
		return err
	})
	if err != nil {
		return fmt.Errorf("find messages without a vector: %w", err)
	}
	if v.behind = len(ids) == missingAtOnce; v.behind {
		v.checked = ids[len(ids)-1]
	}
	v.more(ids...)
	return nil
}

// unreadMessage is a message or a fact without a vector.
type unreadMessage struct {
	id         int64
	name, text string
	keys       string // of a fact: its subject and its keys
	states     bool   // it is a fact, or a statement of a person
	vec        []int8 // of the text, followed by that of the keys
}

// some embeds the statements of one batch of messages, and returns the number of messages.
func (v *vectors) some(ctx context.Context) (int, error) {
	ctx, cancel := context.WithTimeout(ctx, embedTimeout)
	defer cancel()
	v.mu.Lock()
	ids := v.todo[:min(len(v.todo), embedBatch)]
	v.mu.Unlock()
	batch, err := v.read(ctx, ids)
	if err != nil || v.paused.Load() { // checked now: messages from after the pause are not sent
		return 0, err
	}
	if len(ids) == 0 {
		return 0, nil
	}
	if err := v.embedAll(ctx, batch); err != nil {
		return 0, err
	}
	if err := v.store(ctx, batch); err != nil {
		return 0, fmt.Errorf("store embeddings: %w", err)
	}
	v.stored.Add(1)
	for i := range batch {
		if m := &batch[i]; len(m.vec) > 0 {
			v.groups.Update(m.id>>placeBits, func(was *groupVectors, has bool) (*groupVectors, int) { return was.with(m, has) })
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.todo = v.todo[len(ids):]; len(v.todo) == 0 {
		v.todo = nil
	}
	return len(ids), nil
}

// embedAll sets the vectors of the statements and facts of a batch.
func (v *vectors) embedAll(ctx context.Context, batch []unreadMessage) error {
	var texts []string
	var of []*unreadMessage
	for i := range batch {
		if m := &batch[i]; m.states {
			texts, of = append(texts, cmp.Or(plain(m.text), " ")), append(of, m)
			if m.keys != "" {
				texts, of = append(texts, m.keys), append(of, m)
			}
		}
	}
	if len(texts) > 0 {
		vecs, err := v.recent.embed(ctx, texts, &v.encoder)
		if err != nil {
			return err
		}
		for i, m := range of {
			m.vec = slices.Concat(m.vec, vecs[i])
		}
	}
	return nil
}

// read reads the messages and facts with these ids. Deleted ones are missing.
func (v *vectors) read(ctx context.Context, ids []int64) (batch []unreadMessage, err error) {
	list, err := json.Marshal(ids)
	if err != nil || len(ids) == 0 {
		return nil, err
	}
	oldest := make(map[int64]int64) // message to compare, of each group
	for _, id := range ids {
		if _, ok := oldest[id>>placeBits]; !ok {
			if oldest[id>>placeBits], err = v.oldest(ctx, id>>placeBits); err != nil {
				return nil, err
			}
		}
	}
	const query = `SELECT m.id, m.name, m.role, m.speaker, m.content, 0, '' FROM json_each(?1) j CROSS JOIN messages m ON m.id = CAST(j.value AS BIGINT)
		UNION ALL SELECT f.id, f.name, '', '', f.text, 1, f.about || coalesce((SELECT ', ' || group_concat(key, ', ') FROM fact_keys WHERE fact = f.id), '')
		FROM json_each(?1) j CROSS JOIN facts f ON f.id = CAST(j.value AS BIGINT)`
	err = v.db.Each(ctx, query, []any{string(list)}, func(scan func(...any) error) error {
		var m unreadMessage
		var role, speaker string
		var fact bool
		err := scan(&m.id, &m.name, &role, &speaker, &m.text, &fact, &m.keys)
		note := noteOf(graphiti.RoleType(role), speaker, m.text, time.Time{})
		m.states = m.text != "" && (fact || note.Flags&isModels == 0 && m.id >= oldest[m.id>>placeBits])
		batch = append(batch, m)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("find what to embed: %w", err)
	}
	return batch, nil
}

// oldest returns the id of the oldest message whose vector is compared: half of a group's messages
// are a model's, and have none.
func (v *vectors) oldest(ctx context.Context, group int64) (id int64, err error) {
	const query = "SELECT coalesce((SELECT id FROM messages WHERE id BETWEEN ? AND ? ORDER BY id DESC LIMIT 1 OFFSET ?), 0)"
	first := group << placeBits
	if err := v.db.QueryRow(ctx, query, []any{first, first | maxPlace, 2 * maxCompared}, &id); err != nil {
		return 0, fmt.Errorf("find the oldest message to embed: %w", err)
	}
	return id, nil
}

// store writes the vectors of a batch, which are empty for all but statements and facts.
func (v *vectors) store(ctx context.Context, batch []unreadMessage) error {
	return v.db.Write(ctx, func(tx *database.Tx) error {
		if v.db.Shared() {
			// Other replicas then read the vectors of these groups again.
			if _, err := tx.Exec(raiseRev, numbersOf(batch)); err != nil {
				return err
			}
		}
		for i := range batch {
			m := &batch[i]
			// A message or fact may have been deleted in the meantime, and its id may now
			// belong to a newer row.
			const named = "(SELECT name FROM messages WHERE id = ?1 UNION ALL SELECT name FROM facts WHERE id = ?1)"
			if _, err := tx.Exec("INSERT INTO vectors (id, model, vec) SELECT ?1, ?2, ?3 WHERE ?4 IN "+named+" ON CONFLICT (id) DO UPDATE SET model = excluded.model, vec = excluded.vec",
				m.id, v.model, bytesOf(m.vec), m.name); err != nil {
				return err
			}
		}
		return nil
	})
}

// of returns a group's vectors, from RAM if possible.
func (v *vectors) of(ctx context.Context, group int64) (*groupVectors, error) {
	if g, ok := v.groups.Get(group); ok {
		return g, nil
	}
	first, g, size, stored := group<<placeBits, new(groupVectors), 1, v.stored.Load()
	const query = "SELECT id & 4294967295, vec FROM vectors WHERE id BETWEEN ? AND ? AND length(vec) > 0 AND model = ? ORDER BY id DESC LIMIT ?"
	err := v.db.Each(ctx, query, []any{first, first | maxPlace, v.model, maxCompared}, func(scan func(...any) error) error {
		var place int64
		var b []byte
		err := scan(&place, &b)
		g.places, g.vecs = append(g.places, place), append(g.vecs, int8sOf(b))
		size += len(b) + 48
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read embeddings: %w", err)
	}
	if v.stored.Load() == stored { // otherwise it may lack a new one
		v.groups.Add(group, g, min(size, maxHeld))
	}
	return g, nil
}

// with returns the vectors with that of a new message or fact, and their size in RAM. The size is 0
// if the vectors must be read again, and negative if they are not in RAM.
func (g *groupVectors) with(m *unreadMessage, held bool) (*groupVectors, int) {
	place := m.id & maxPlace
	switch {
	case !held:
		return nil, -1
	case len(g.places) > 0 && g.places[0] >= place:
		return nil, 0
	}
	n := min(len(g.places), maxCompared-1)
	return &groupVectors{append([]int64{place}, g.places[:n]...), append([][]int8{m.vec}, g.vecs[:n]...)}, min((n+1)*(len(m.vec)+48), maxHeld)
}

// forget drops a group's vectors from RAM.
func (v *vectors) forget(group int64) {
	v.recent.Clear()
	v.groups.Remove(group)
}

func bytesOf(v []int8) []byte {
	if len(v) == 0 {
		return []byte{} // not NULL
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(v))), len(v))
}
func int8sOf(b []byte) []int8 {
	return unsafe.Slice((*int8)(unsafe.Pointer(unsafe.SliceData(b))), len(b))
}
