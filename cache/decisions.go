package cache

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/internal/memo"
)

const (
	// decisionsInRAM is the most bytes of decisions in RAM.
	decisionsInRAM = 10 << 20

	// maxLookup is the most keys in one query.
	maxLookup = 500
)

// Decisions stores the decision of each turn: the newest in RAM, all in a store. It
// implements inject.Decisions and is safe for concurrent use.
type Decisions struct {
	store  store
	shared bool // replicas write to the store, so a key may get a decision at any time
	recent *memo.LRU[[16]byte, recentDecision]
}

// recentDecision is a decision as stored at a number of forgets. A later forget may have
// removed its block.
type recentDecision struct {
	*inject.Decision       // nil if the key has no decision
	forgets          int64 // number of forgets at the read
}

// withoutBlock returns the decision without its block and results.
func withoutBlock(d inject.Decision) inject.Decision {
	d.Block, d.Facts, d.Pieces = "", 0, ""
	return d
}

// Lookup returns the decision of each key, or nil for a key without one. now is the
// request's number of forgets; decisions cached at another number are read again. Lookup
// reads missing keys from the store, up to maxLookup per query, and never skips any: a
// missing block would change the beginning of the conversation. With an error it returns
// the decisions found so far.
func (d *Decisions) Lookup(ctx context.Context, now int64, keys [][16]byte) ([]*inject.Decision, error) {
	list := make([]*inject.Decision, len(keys))
	var missing [][16]byte
	var at []int // indexes of the missing keys
	d.recent.Each(keys, func(i int, e recentDecision, ok bool) {
		if ok && e.forgets == now {
			list[i] = e.Decision
		} else {
			missing, at = append(missing, keys[i]), append(at, i)
		}
	})
	for len(missing) > 0 {
		n := min(len(missing), maxLookup)
		err := d.store.get(ctx, decisionKind, keysOf(missing[:n]), func(i int, value []byte) (err error) {
			list[at[i]], err = parseDecision(value, false)
			return err
		})
		if err != nil {
			return list, fmt.Errorf("read decisions: %w", err)
		}
		for i, k := range missing[:n] {
			if found := list[at[i]]; found != nil || !d.shared {
				// keeps a decision that Keep has stored meanwhile
				e := recentDecision{found, now}
				d.recent.AddOver(k, e, e.bytes(), func(o recentDecision) bool { return o.forgets < now })
			}
		}
		missing, at = missing[n:], at[n:]
	}
	return list, nil
}

// WithPieces returns the decision of each key with its search results, or nil for a key
// without one. It reads the store, because RAM does not hold the results.
func (d *Decisions) WithPieces(ctx context.Context, keys [][16]byte) ([]*inject.Decision, error) {
	list := make([]*inject.Decision, 0, len(keys))
	for some := range slices.Chunk(keys, maxLookup) {
		from := len(list)
		list = append(list, make([]*inject.Decision, len(some))...)
		err := d.store.get(ctx, decisionKind, keysOf(some), func(i int, value []byte) (err error) {
			list[from+i], err = parseDecision(value, true)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("read decisions: %w", err)
		}
	}
	return list, nil
}

// bytes returns the approximate size of the entry in RAM.
func (e recentDecision) bytes() int {
	if e.Decision == nil {
		return 150
	}
	return 240 + len(e.Block)
}

// Keep stores a decision for a key without one, and returns the key's decision, which is
// then durable. groups are the sources of its facts. If one of them has forgotten anything
// since the request arrived, Keep stores the decision without its block and pieces.
func (d *Decisions) Keep(ctx context.Context, key [16]byte, made inject.Decision, groups ...string) (*inject.Decision, error) {
	without := withoutBlock(made)
	refused := appendDecision(make([]byte, 0, 2*(decisionHead+len(made.Reason))+len(made.Pieces)+len(made.Block)), &without)
	r := &record{kind: decisionKind, key: key[:], value: appendDecision(refused, &made)[len(refused):], scopes: factsOfAll(groups), generation: made.Generation,
		refused: refused, first: true}
	value, err := d.store.keep(ctx, r)
	kept := &made
	kept.Pieces = "" // not held in RAM
	if err == nil && !bytes.Equal(value, r.value) {
		kept, err = parseDecision(value, false)
	}
	if err != nil {
		// it may be stored despite the error, such as a timeout
		d.recent.Remove(key)
		return nil, fmt.Errorf("keep decision: %w", err)
	}
	d.remember(key, kept, made.Generation)
	return kept, nil
}

// Drop replaces a key's decision by one without a block.
func (d *Decisions) Drop(ctx context.Context, key [16]byte, made inject.Decision) error {
	made = withoutBlock(made)
	d.remember(key, &made, made.Generation) // this process repeats the block no more, whether or not it is stored
	if err := d.store.write(ctx, &record{kind: decisionKind, key: key[:], value: appendDecision(nil, &made), generation: made.Generation}); err != nil {
		return fmt.Errorf("drop block: %w", err)
	}
	return nil
}

func (d *Decisions) remember(key [16]byte, kept *inject.Decision, forgets int64) {
	e := recentDecision{kept, forgets}
	d.recent.Add(key, e, e.bytes())
}

// Forget removes the blocks with facts of a group and returns their number. It also removes
// search results that were not shown, and trials. The decisions stay: their conversations continue
// without those blocks.
func (d *Decisions) Forget(ctx context.Context, group string) (int, error) {
	n, err := d.store.forget(ctx, decisionKind, factsOf(group))
	if err == nil {
		_, err = d.store.forget(ctx, trialKind, group)
	}
	if err != nil {
		return n, fmt.Errorf("empty blocks: %w", err)
	}
	return n, nil
}

// Emptied returns the number of decisions that lost their block to Forget.
func (d *Decisions) Emptied(ctx context.Context) (int, error) {
	n := 0
	err := d.store.scoped(ctx, decisionKind, []string{emptiedScope}, func(_, _ []byte) error { n++; return nil })
	if err != nil {
		return 0, fmt.Errorf("count blocks: %w", err)
	}
	return n, nil
}

// decisionHead is the most bytes of a decision's numbers.
const decisionHead = 5 * binary.MaxVarintLen64

// The bits of a decision's first number.
const (
	isIngested = 1 << iota
	hasPieces
)

// appendDecision appends the stored form of a decision: the permanent part, the pieces with
// their length if there are any, and the block at the end.
func appendDecision(b []byte, d *inject.Decision) []byte {
	flags := uint64(0)
	if d.Ingest {
		flags |= isIngested
	}
	if d.Pieces != "" {
		flags |= hasPieces
	}
	for _, n := range [...]uint64{flags, uint64(d.Facts), uint64(d.Generation), uint64(len(d.Reason))} {
		b = binary.AppendUvarint(b, n)
	}
	b = append(b, d.Reason...)
	if d.Pieces != "" {
		b = append(binary.AppendUvarint(b, uint64(len(d.Pieces))), d.Pieces...)
	}
	return append(b, d.Block...)
}

var errDecision = errors.New("a stored decision is damaged")

// stored is a parsed stored decision.
type stored struct {
	numbers               [4]uint64
	stays                 int // size of the part that remains without the block
	reason, pieces, block []byte
}

func splitDecision(value []byte) (s stored, err error) {
	rest := value
	for i := range s.numbers {
		n, size := binary.Uvarint(rest)
		if size <= 0 {
			return s, errDecision
		}
		s.numbers[i], rest = n, rest[size:]
	}
	if s.numbers[0] > isIngested|hasPieces || s.numbers[3] > uint64(len(rest)) {
		return s, errDecision
	}
	s.reason, rest = rest[:s.numbers[3]], rest[s.numbers[3]:]
	s.stays = len(value) - len(rest)
	if s.numbers[0]&hasPieces != 0 {
		n, size := binary.Uvarint(rest)
		if size <= 0 || n == 0 || n > uint64(len(rest)-size) {
			return s, errDecision
		}
		s.pieces, rest = rest[size:size+int(n)], rest[size+int(n):] //nolint:gosec // it is less
	}
	s.block = rest
	return s, nil
}

func parseDecision(value []byte, withPieces bool) (*inject.Decision, error) {
	s, err := splitDecision(value)
	if err != nil {
		return nil, err
	}
	d := &inject.Decision{Ingest: s.numbers[0]&isIngested != 0, Facts: int(s.numbers[1]), Generation: int64(s.numbers[2]), Reason: string(s.reason), Block: string(s.block)}
	if withPieces {
		d.Pieces = inject.Pieces(s.pieces)
	}
	return d, nil
}

// emptied returns a stored decision without its block and pieces, and whether it had a
// block.
func emptied(value []byte) (rest []byte, block bool) {
	s, err := splitDecision(value)
	if err != nil {
		return nil, false
	}
	rest = bytes.Clone(value[:s.stays])
	rest[0] &^= hasPieces // the number has one byte
	return rest, len(s.block) > 0
}
