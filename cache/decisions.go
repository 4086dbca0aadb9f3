package cache

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"

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

// withoutBlock returns the decision as if it had never had a block.
func withoutBlock(d inject.Decision) inject.Decision {
	d.Block, d.Facts = "", 0
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
			list[at[i]], err = parseDecision(value)
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
// request arrived, the decision is stored without its block.
func (d *Decisions) Keep(ctx context.Context, key [16]byte, made inject.Decision, groups ...string) (*inject.Decision, error) {
	without := withoutBlock(made)
	refused := appendDecision(make([]byte, 0, 2*(decisionHead+len(made.Reason))+len(made.Block)), &without)
	r := &record{kind: decisionKind, key: key[:], value: appendDecision(refused, &made)[len(refused):], scopes: factsOfAll(groups), generation: made.Generation,
		refused: refused, first: true}
	value, err := d.store.keep(ctx, r)
	kept := &made
	if err == nil && !bytes.Equal(value, r.value) {
		kept, err = parseDecision(value)
	}
	if err != nil {
		// It may have been stored all the same: perhaps only the time ran out.
		d.recent.Remove(key)
		return nil, fmt.Errorf("keep decision: %w", err)
	}
	d.remember(key, kept, made.Generation)
	return kept, nil
}

func (d *Decisions) remember(key [16]byte, kept *inject.Decision, forgets int64) {
	e := recentDecision{kept, forgets}
	d.recent.Add(key, e, e.bytes())
}

// Forget removes the blocks that hold facts of a group, and returns how many. The
// decisions stay: their conversations go on without those blocks.
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

// decisionHead is how long the numbers before a decision's texts are at most.
const decisionHead = 4 * binary.MaxVarintLen64

// appendDecision appends a decision as it is stored: what stays of it for good, and
// the block at the end.
func appendDecision(b []byte, d *inject.Decision) []byte {
	ingest := uint64(0)
	if d.Ingest {
		ingest = 1
	}
	for _, n := range [...]uint64{ingest, uint64(d.Facts), uint64(d.Generation), uint64(len(d.Reason))} {
		b = binary.AppendUvarint(b, n)
	}
	return append(append(b, d.Reason...), d.Block...)
}

var errDecision = errors.New("a stored decision is damaged")

// splitDecision returns the numbers before a decision's texts, and the texts.
func splitDecision(value []byte) (numbers [4]uint64, texts []byte, err error) {
	for i := range numbers {
		n, size := binary.Uvarint(value)
		if size <= 0 {
			return numbers, nil, errDecision
		}
		numbers[i], value = n, value[size:]
	}
	if numbers[0] > 1 || numbers[3] > uint64(len(value)) {
		return numbers, nil, errDecision
	}
	return numbers, value, nil
}

func parseDecision(value []byte) (*inject.Decision, error) {
	n, texts, err := splitDecision(value)
	if err != nil {
		return nil, err
	}
	return &inject.Decision{Ingest: n[0] == 1, Facts: int(n[1]), Generation: int64(n[2]), Reason: string(texts[:n[3]]), Block: string(texts[n[3]:])}, nil
}

// emptied returns a stored decision without its block.
func emptied(value []byte) []byte {
	n, texts, err := splitDecision(value)
	if err != nil {
		return nil
	}
	return value[:len(value)-len(texts)+int(n[3])]
}
