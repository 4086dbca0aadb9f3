package cache

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/inject"
	"github.com/graphiti-proxy/graphiti-proxy/internal/memo"
)

// decisionsInRAM is the most bytes of decisions in RAM.
const decisionsInRAM = 10 << 20

// Decisions stores the decision of each turn: the newest in RAM, all in a store. It
// implements inject.Decisions and is safe for concurrent use.
type Decisions struct {
	store  *tables
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
// reads missing keys from the store, and never skips any: a missing block would change the beginning of the conversation. With an error it returns
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
	err := d.store.get(ctx, decisionKind, keysOf(missing), func(i int, value []byte) (err error) {
		list[at[i]], err = parseDecision(value, false)
		return err
	})
	if err != nil {
		return list, fmt.Errorf("read decisions: %w", err)
	}
	for i, k := range missing {
		if found := list[at[i]]; found != nil || d.store.shared == nil { // else a replica may store one at any time
			// keeps a decision that Keep has stored meanwhile
			e := recentDecision{found, now}
			d.recent.AddOver(k, e, e.bytes(), func(o recentDecision) bool { return o.forgets < now })
		}
	}
	return list, nil
}

// WithPieces returns the decision of each key with its search results, or nil for a key
// without one. It reads the store, because RAM does not hold the results.
func (d *Decisions) WithPieces(ctx context.Context, keys [][16]byte) ([]*inject.Decision, error) {
	list := make([]*inject.Decision, len(keys))
	err := d.store.get(ctx, decisionKind, keysOf(keys), func(i int, value []byte) (err error) {
		list[i], err = parseDecision(value, true)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("read decisions: %w", err)
	}
	return list, nil
}

// latestRead is the most decisions that Latest reads.
const latestRead = 2000

// Latest calls f for the newest decisions with facts of a group, newest first, with their search
// results and times.
func (d *Decisions) Latest(ctx context.Context, group string, f func(key []byte, c inject.Considered, at time.Time)) error {
	err := d.store.latest(ctx, decisionKind, factsOf(group), latestRead, func(key, value []byte, born time.Time) error {
		made, err := parseDecision(value, true)
		if err != nil {
			return err
		}
		if c, err := made.Pieces.Read(); err == nil { // a damaged list has no results
			f(key, c, born)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("read decisions: %w", err)
	}
	return nil
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
	r := &record{kind: decisionKind, key: key[:], value: encodeDecision(&made), scopes: factsOfAll(groups), generation: made.Generation,
		refused: encodeDecision(&without), first: true}
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
	if err := d.store.write(ctx, &record{kind: decisionKind, key: key[:], value: encodeDecision(&made), generation: made.Generation}); err != nil {
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

var errDecision = errors.New("a stored decision is damaged")

// encodeDecision returns the stored form of a decision.
func encodeDecision(d *inject.Decision) []byte {
	value, _ := json.Marshal(d) // strings, numbers and a boolean
	return value
}

func parseDecision(value []byte, withPieces bool) (*inject.Decision, error) {
	d := new(inject.Decision)
	if json.Unmarshal(value, d) != nil {
		return nil, errDecision
	}
	if !withPieces {
		d.Pieces = ""
	}
	return d, nil
}

// emptied returns a stored decision without its block and pieces, and whether it had a
// block.
func emptied(value []byte) (rest []byte, block bool) {
	d, err := parseDecision(value, false)
	if err != nil {
		return nil, false
	}
	block = d.Block != ""
	d.Block = ""
	return encodeDecision(d), block
}
