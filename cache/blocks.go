package cache

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
)

// blocksInMemory bounds the bytes of one generation of blocks in memory.
const blocksInMemory = 16 << 20

// maxLookup bounds the keys of one query to the file.
const maxLookup = 500

// Blocks keeps a text and a count by key: the block that stands before a
// message. It is safe for concurrent use.
type Blocks struct {
	db     *sqlite.DB
	recent *recent[[16]byte, block]
}

type block struct {
	text  string
	facts int
	known bool // false: the file has none
}

// Lookup calls found for each key that has a block, with its position. What
// is not in memory is read from the file, in one query.
func (b *Blocks) Lookup(ctx context.Context, keys [][16]byte, found func(i int, text string, facts int)) error {
	var missing map[[16]byte]int
	for i, k := range keys {
		e, ok := b.recent.get(k)
		switch {
		case ok && e.known:
			found(i, e.text, e.facts)
		case !ok && len(missing) < maxLookup:
			if missing == nil {
				missing = make(map[[16]byte]int)
			}
			missing[k] = i
		}
	}
	if len(missing) == 0 {
		return nil
	}
	args := make([]any, 0, len(missing))
	for k := range missing {
		args = append(args, k[:])
	}
	rows, err := b.db.Query(ctx,
		"SELECT key, block, facts FROM blocks WHERE key IN (?"+strings.Repeat(",?", len(args)-1)+")", args...)
	if err != nil {
		return fmt.Errorf("read blocks: %w", err)
	}
	defer rows.Close()
	for rows.Next() {
		var key []byte
		e := block{known: true}
		if err := rows.Scan(&key, &e.text, &e.facts); err != nil {
			return fmt.Errorf("read blocks: %w", err)
		}
		k := [16]byte(key)
		found(missing[k], e.text, e.facts)
		b.recent.putNew(k, e, costOfBlock(e))
		delete(missing, k)
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("read blocks: %w", err)
	}
	for k := range missing {
		b.recent.putNew(k, block{}, costOfBlock(block{}))
	}
	return nil
}

// Keep stores a block for a key that has none, and returns the one that the
// key has now. It is in the file when Keep returns. groups are those that its
// facts came from.
func (b *Blocks) Keep(ctx context.Context, key [16]byte, text string, facts int, groups ...string) (string, int, error) {
	e := block{text: text, facts: facts, known: true}
	err := b.db.Write(ctx, func(tx *sqlite.Tx) error {
		if err := ctx.Err(); err != nil {
			return err // nobody waits for it: the request has gone without
		}
		r, err := tx.Exec("INSERT INTO blocks (key, block, facts, born, grps) VALUES (?, ?, ?, ?, ?) ON CONFLICT DO NOTHING",
			key[:], text, facts, time.Now().Unix(), ","+strings.Join(groups, ",")+",")
		if err != nil {
			return err
		}
		if n, err := r.RowsAffected(); err != nil || n == 1 {
			return err
		}
		return tx.QueryRow("SELECT block, facts FROM blocks WHERE key = ?", key[:]).Scan(&e.text, &e.facts)
	})
	if err != nil {
		// It may have been stored all the same, when only the time ran out.
		b.recent.drop(key)
		return "", 0, fmt.Errorf("keep block: %w", err)
	}
	b.recent.put(key, e, costOfBlock(e))
	return e.text, e.facts, nil
}

// Blank empties the block of a key.
func (b *Blocks) Blank(key [16]byte) error {
	err := b.db.Write(context.Background(), func(tx *sqlite.Tx) error {
		tx.Fold()
		_, err := tx.Exec("UPDATE blocks SET block = '' WHERE key = ?", key[:])
		return err
	})
	b.recent.drop(key)
	if err != nil {
		return fmt.Errorf("empty block: %w", err)
	}
	return nil
}

// Forget empties the blocks that hold facts of a group, or of which that is
// not known, and returns how many. Their conversations go on without.
func (b *Blocks) Forget(group string) (n int, err error) {
	err = b.db.Write(context.Background(), func(tx *sqlite.Tx) error {
		tx.Fold()
		r, err := tx.Exec("UPDATE blocks SET block = '' WHERE block <> '' AND (grps = '' OR instr(grps, ?) > 0)", ","+group+",")
		if err != nil {
			return err
		}
		emptied, err := r.RowsAffected()
		n = int(emptied)
		return err
	})
	b.recent.clear()
	if err != nil {
		return 0, fmt.Errorf("empty blocks: %w", err)
	}
	return n, nil
}

// Emptied counts the blocks that were emptied by Forget.
func (b *Blocks) Emptied(ctx context.Context) (n int, err error) {
	if err := b.db.QueryRow(ctx, "SELECT count(*) FROM blocks WHERE block = '' AND (facts > 0 OR facts < -1)", nil, &n); err != nil {
		return 0, fmt.Errorf("count blocks: %w", err)
	}
	return n, nil
}

func costOfBlock(e block) int { return 100 + len(e.text) }
