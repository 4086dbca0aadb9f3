package cache

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/graphiti-proxy/graphiti-proxy/inject"
)

const (
	// decisionsInRAM bounds the decisions in RAM, in bytes.
	decisionsInRAM = 32 << 20

	// maxLookup bounds the keys of one query.
	maxLookup = 500
)

// Decisions keeps what was decided about each turn: the newest in RAM, all in a
// store. It implements inject.Decisions and is safe for concurrent use.
type Decisions struct {
	store  store
	shared bool // replicas write to it: a key without a decision may get one at any moment
	recent *byteLRU[[16]byte, recentDecision]
}

// recentDecision is a decision as the store had it at a number of forgets: a
// forget may have emptied its block since.
type recentDecision struct {
	*inject.Decision       // nil: there is none
	forgets          int64 // the number then
}

// withoutBlock returns the decision as if it had never had a block, and nothing had been
// found.
func withoutBlock(d inject.Decision) inject.Decision {
	d.Block, d.Facts, d.Pieces = "", 0, ""
	return d
}

// Lookup returns the decision about each key, nil for a key without one. now is
// the number of forgets that the request carries; a decision that was cached at
// another number is read again. What is not in RAM comes from the store, up to
// maxLookup keys in one query, and never only a part of it: a block that is left
// out changes the beginning of the conversation. With an error Lookup returns what
// it has found so far.
func (d *Decisions) Lookup(ctx context.Context, now int64, keys [][16]byte) ([]*inject.Decision, error) {
	list := make([]*inject.Decision, len(keys))
	var missing [][16]byte
	var at []int // the index in keys of each that is missing
	for i, k := range keys {
		if e, ok := d.recent.Get(k); ok && e.forgets == now {
			list[i] = e.Decision
		} else {
			missing, at = append(missing, k), append(at, i)
		}
	}
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
				// A decision that Keep has stored meanwhile stays.
				e := recentDecision{found, now}
				d.recent.AddOver(k, e, e.bytes(), func(o recentDecision) bool { return o.forgets < now })
			}
		}
		missing, at = missing[n:], at[n:]
	}
	return list, nil
}

// WithPieces returns the decision about each key with what was found for it, nil for a key
// without one. It asks the store, because pieces are not held in RAM.
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

// bytes is about what the entry takes in RAM.
func (e recentDecision) bytes() int {
	if e.Decision == nil {
		return 150
	}
	return 200 + len(e.Block)
}

// Keep stores a decision for a key that has none, and returns the decision that
// the key has then, which is on disk or in Redis when Keep returns. groups are
// where its facts came from. If one of them has forgotten something since the
// request arrived, the decision is stored without its block and its pieces.
func (d *Decisions) Keep(ctx context.Context, key [16]byte, made inject.Decision, groups ...string) (*inject.Decision, error) {
	without := withoutBlock(made)
	refused := appendDecision(make([]byte, 0, 2*(decisionHead+len(made.Reason))+len(made.Pieces)+len(made.Block)), &without)
	r := &record{kind: decisionKind, key: key[:], value: appendDecision(refused, &made)[len(refused):], scopes: factsOfAll(groups), generation: made.Generation,
		refused: refused, first: true}
	value, err := d.store.keep(ctx, r)
	kept := &made
	kept.Pieces = "" // they are not held in RAM
	if err == nil && !bytes.Equal(value, r.value) {
		kept, err = parseDecision(value, false)
	}
	if err != nil {
		// It may have been stored all the same: perhaps only the time ran out.
		d.recent.Remove(key)
		return nil, fmt.Errorf("keep decision: %w", err)
	}
	d.remember(key, kept, made.Generation)
	return kept, nil
}

// Drop stores a decision without a block in place of the one that a key has.
func (d *Decisions) Drop(ctx context.Context, key [16]byte, made inject.Decision) error {
	made = withoutBlock(made)
	err := d.store.write(ctx, &record{kind: decisionKind, key: key[:], value: appendDecision(nil, &made), generation: made.Generation})
	if err != nil {
		d.recent.Remove(key)
		return fmt.Errorf("drop block: %w", err)
	}
	d.remember(key, &made, made.Generation)
	return nil
}

func (d *Decisions) remember(key [16]byte, kept *inject.Decision, forgets int64) {
	e := recentDecision{kept, forgets}
	d.recent.Add(key, e, e.bytes())
}

// Forget removes the blocks that hold facts of a group, and returns how many. What was
// found there and not shown is removed, too. The decisions stay: their conversations go on
// without those blocks.
func (d *Decisions) Forget(ctx context.Context, group string) (int, error) {
	n, err := d.store.forget(ctx, decisionKind, factsOf(group))
	if err != nil {
		return n, fmt.Errorf("empty blocks: %w", err)
	}
	return n, nil
}

// Emptied counts the decisions whose block was removed by Forget.
func (d *Decisions) Emptied(ctx context.Context) (int, error) {
	n := 0
	err := d.store.scoped(ctx, decisionKind, []string{emptiedScope}, func(_, _ []byte) error { n++; return nil })
	if err != nil {
		return 0, fmt.Errorf("count blocks: %w", err)
	}
	return n, nil
}

// decisionHead is how long the numbers of a decision are at most.
const decisionHead = 5 * binary.MaxVarintLen64

// The bits of a decision's first number.
const (
	isIngested = 1 << iota
	hasPieces
)

// appendDecision appends a decision as it is stored: what stays of it for good, the pieces
// behind their length, if there are any, and the block at the end.
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

// stored is a decision as it is stored, taken apart.
type stored struct {
	numbers               [4]uint64
	stays                 int // how many bytes stay when its block is removed
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

// emptied returns a stored decision without its block and its pieces, and whether it had
// a block.
func emptied(value []byte) (rest []byte, block bool) {
	s, err := splitDecision(value)
	if err != nil {
		return nil, false
	}
	rest = bytes.Clone(value[:s.stays])
	rest[0] &^= hasPieces // the number has one byte
	return rest, len(s.block) > 0
}
