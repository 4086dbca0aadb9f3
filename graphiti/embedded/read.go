package embedded

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// row is a stored message.
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
	ids := []byte{'['}
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
		FROM json_each(?) j CROSS JOIN messages m ON m.id = j.value`, []any{string(append(ids, ']'))}, func(scan func(...any) error) error {
		r := &row{}
		if err := scan(&place, &r.name, &r.role, &r.speaker, &r.content, &said); err != nil {
			return err
		}
		r.said = time.UnixMilli(said)
		of[place].row = r
		return nil
	})
	if err != nil {
		return fmt.Errorf("read messages: %w", err)
	}
	return nil
}
