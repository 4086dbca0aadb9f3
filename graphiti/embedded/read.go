package embedded

import (
	"context"
	"fmt"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// row is a stored message. It is immutable.
type row struct {
	name    string
	role    graphiti.RoleType
	speaker string
	content string
	said    time.Time
	told    *told // nil for messages
}

// load reads the messages and facts without a row. Deleted ones remain without a row.
func (e *Store) load(ctx context.Context, group int64, hits []*hit) error {
	hits, err := e.loadFacts(ctx, group, hits)
	if err != nil {
		return err
	}
	of := make(map[int64]*hit, len(hits))
	ids, drops := []byte{'['}, e.recent.find(group, hits)
	for _, h := range hits {
		if h.row != nil {
			continue
		}
		if len(of) > 0 {
			ids = append(ids, ',')
		}
		ids = strconv.AppendInt(ids, group<<placeBits|h.place, 10)
		of[h.place] = h
	}
	if len(of) == 0 {
		return nil
	}
	if ctx.Err() != nil {
		return fmt.Errorf("read messages: %w", ctx.Err())
	}
	// Watching ctx during so short a read would cost more than the read.
	var place, said int64
	err = e.db.Each(context.WithoutCancel(ctx), `SELECT m.id & 4294967295, m.name, m.role, m.speaker, m.content, m.said
		FROM json_each(?) j CROSS JOIN messages m ON m.id = CAST(j.value AS BIGINT)`, []any{string(append(ids, ']'))}, func(scan func(...any) error) error {
		r := &row{}
		if err := scan(&place, &r.name, &r.role, &r.speaker, &r.content, &said); err != nil {
			return err
		}
		r.said = time.UnixMilli(said)
		of[place].row = r
		e.recent.add(group<<placeBits|place, r, drops)
		return nil
	})
	if err != nil {
		return fmt.Errorf("read messages: %w", err)
	}
	return nil
}

// recentBytes bounds the messages of recentRows.
const recentBytes = 4 << 20

// recentRows holds the messages that were stored or read most recently, by their ids. It is
// safe for concurrent use.
type recentRows struct {
	mu    sync.Mutex // protects the fields below
	lru   *simplelru.LRU[int64, *row]
	bytes int
	drops int
}

func newRecentRows() *recentRows {
	r := &recentRows{}
	r.clear()
	return r
}

func (r *recentRows) clear() {
	r.lru, _ = simplelru.NewLRU(math.MaxInt, func(_ int64, m *row) { r.bytes -= m.bytes() }) // fails only for a size of 0
	r.bytes = 0
}

func (r *row) bytes() int { return 200 + len(r.name) + len(r.speaker) + len(r.content) }

// find sets the rows of hits of a group, and returns the number of drops so far.
func (r *recentRows) find(group int64, hits []*hit) (drops int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, h := range hits {
		if h.row == nil {
			h.row, _ = r.lru.Get(group<<placeBits | h.place)
		}
	}
	return r.drops
}

// add adds a message, unless messages were deleted since its search had that number of
// drops: another one may have its id now.
func (r *recentRows) add(id int64, m *row, drops int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if drops == r.drops {
		r.addLocked(id, m)
	}
}

// committed adds new messages.
func (r *recentRows) committed(ids []int64, rows []*row) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range rows {
		r.addLocked(ids[i], rows[i])
	}
}

func (r *recentRows) addLocked(id int64, m *row) {
	if r.lru.Contains(id) {
		return
	}
	r.lru.Add(id, m)
	for r.bytes += m.bytes(); r.bytes > recentBytes; {
		r.lru.RemoveOldest()
	}
}

// drop removes all messages, after some were deleted.
func (r *recentRows) drop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drops++
	r.clear()
}
