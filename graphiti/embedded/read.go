package embedded

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/memo"
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
		e.recent.Add(rowKey{drops, group<<placeBits | place}, r, r.bytes())
		return nil
	})
	if err != nil {
		return fmt.Errorf("read messages: %w", err)
	}
	return nil
}

// recentBytes bounds the messages of recentRows.
const recentBytes = 4 << 20

// recentRows holds the messages that were stored or read most recently. It is safe for
// concurrent use.
type recentRows struct {
	*memo.LRU[rowKey, *row]
	drops atomic.Int64
}

// rowKey has the number of drops before the search that read a message: after a deletion,
// another one may have its id.
type rowKey struct{ drops, id int64 }

func newRecentRows() *recentRows { return &recentRows{LRU: memo.NewLRU[rowKey, *row](recentBytes)} }

func (r *row) bytes() int { return 200 + len(r.name) + len(r.speaker) + len(r.content) }

// find sets the rows of hits of a group, and returns the number of drops so far.
func (r *recentRows) find(group int64, hits []*hit) (drops int64) {
	drops = r.drops.Load()
	for _, h := range hits {
		if h.row == nil {
			h.row, _ = r.Get(rowKey{drops, group<<placeBits | h.place})
		}
	}
	return drops
}

// committed adds new messages.
func (r *recentRows) committed(ids []int64, rows []*row) {
	drops := r.drops.Load()
	for i, m := range rows {
		r.Add(rowKey{drops, ids[i]}, m, m.bytes())
	}
}

// drop removes all messages, after some were deleted.
func (r *recentRows) drop() {
	r.drops.Add(1)
	r.Clear()
}
