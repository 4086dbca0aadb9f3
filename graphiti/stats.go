package graphiti

import (
	"context"
	"fmt"
)

// Stats says how much an embedded memory holds.
type Stats struct {
	Groups   int64 `json:"groups"`
	Messages int64 `json:"messages"`
	Bytes    int64 `json:"bytes"` // of the file, without its log
}

// Stats counts what is stored.
func (e *Embedded) Stats(ctx context.Context) (Stats, error) {
	var s Stats
	if err := e.db.QueryRow(ctx, `SELECT (SELECT count(*) FROM groups), (SELECT count(*) FROM messages),
		(SELECT page_count * page_size FROM pragma_page_count, pragma_page_size)`, nil, &s.Groups, &s.Messages, &s.Bytes); err != nil {
		return Stats{}, fmt.Errorf("count what is stored: %w", err)
	}
	return s, nil
}
