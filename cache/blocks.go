package cache

import (
	"context"
	"fmt"
	"time"
)

// blocksInMemory bounds the bytes of one generation of blocks in memory.
const blocksInMemory = 16 << 20

// maxLookup bounds the keys of one query.
const maxLookup = 500

// Blocks keeps a text and a count by key: the block that stands before a
// message. It is safe for concurrent use.
type Blocks struct {
	store  store
	recent *recent[[16]byte, block]
}

type block struct {
	text  string
	facts int
	since time.Time // when the request came in that it was decided for
	known bool      // false: the store has none
}

// without is a block that does not show anything: it never did, so that its
// count is none. Below zero it says something else.
func (b block) without() block {
	b.text, b.facts = "", max(min(b.facts, 0), -1)
	return b
}

// Lookup calls found for each key that has a block, with its position and with
// when the request came in that it was decided for. What is not in memory is
// read from the store, maxLookup keys at a time: all that are asked for, or a
// conversation would begin otherwise the next time.
func (b *Blocks) Lookup(ctx context.Context, keys [][16]byte, found func(i int, text string, facts int, since time.Time)) error {
	var missing [][16]byte
	var at []int // where they stand among keys
	for i, k := range keys {
		e, ok := b.recent.get(k)
		switch {
		case !ok:
			missing, at = append(missing, k), append(at, i)
		case e.known:
			found(i, e.text, e.facts, e.since)
		}
	}
	for len(missing) > 0 {
		n := min(len(missing), maxLookup)
		if err := b.read(ctx, missing[:n], func(i int, e block) { found(at[i], e.text, e.facts, e.since) }); err != nil {
			return fmt.Errorf("read blocks: %w", err)
		}
		missing, at = missing[n:], at[n:]
	}
	return nil
}

// read calls found for those of some keys that the store has.
func (b *Blocks) read(ctx context.Context, keys [][16]byte, found func(i int, e block)) error {
	has := make([]bool, len(keys))
	err := b.store.readBlocks(ctx, keys, func(i int, e block) {
		has[i] = true
		found(i, e)
		b.recent.putNew(keys[i], e, costOfBlock(e))
	})
	if err != nil || b.store.shared() { // another replica may decide any moment
		return err
	}
	for i, k := range keys {
		if !has[i] {
			b.recent.putNew(k, block{}, costOfBlock(block{}))
		}
	}
	return nil
}

// Keep stores a block for a key that has none, and returns the one that the
// key has now. It is stored when Keep returns. since is when the request came
// in, and groups are those that its facts came from: what they have forgotten
// since is not kept.
func (b *Blocks) Keep(ctx context.Context, key [16]byte, text string, facts int, since time.Time, groups ...string) (string, int, error) {
	e, err := b.store.keepBlock(ctx, key, block{text: text, facts: facts, since: since, known: true}, groups)
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
	err := b.store.emptyBlock(key)
	b.recent.drop(key)
	if err != nil {
		return fmt.Errorf("empty block: %w", err)
	}
	return nil
}

// Forget empties the blocks that hold facts of a group, or of which that is
// not known, and returns how many. Their conversations go on without.
func (b *Blocks) Forget(group string) (int, error) {
	n, err := b.store.forgetBlocks(group)
	b.recent.clear()
	if err != nil {
		return 0, fmt.Errorf("empty blocks: %w", err)
	}
	return n, nil
}

// Forgotten says that another replica has emptied blocks.
func (b *Blocks) Forgotten() { b.recent.clear() }

// Emptied counts the blocks that were emptied by Forget.
func (b *Blocks) Emptied(ctx context.Context) (int, error) {
	n, err := b.store.countEmptied(ctx)
	if err != nil {
		return 0, fmt.Errorf("count blocks: %w", err)
	}
	return n, nil
}

func costOfBlock(e block) int { return 100 + len(e.text) }
