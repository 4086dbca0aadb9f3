package main

import (
	"fmt"
	"strings"
	"sync"
)

// blocks counts a target's answers, and the requests that got a block.
type blocks struct {
	mu           sync.Mutex // protects the fields below
	answers, got int
	without      string // memory header of a request without a block
}

// hasBlock reports whether a memory header reports a block.
func hasBlock(header string) bool {
	return strings.HasPrefix(header, "recalled") && !strings.Contains(header, "facts=0;")
}

func (b *blocks) count(header string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.answers++
	if hasBlock(header) {
		b.got++
	} else {
		b.without = header
	}
}

// take returns the counts and resets them.
func (b *blocks) take() (answers, got int, without string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	answers, got, without = b.answers, b.got, b.without
	b.answers, b.got, b.without = 0, 0, ""
	return answers, got, without
}

// blockShare returns the share of the requests since the last call that got a block. It
// returns an error if a target that repeats a block sent a request without it: its figure
// would not be that of a kept block.
func (t *target) blockShare() (float64, error) {
	answers, got, without := t.blocks.take()
	if t.recalls && t.history(1) == kept && got < answers {
		return 0, fmt.Errorf("%d of %d requests had no block, the last of them with %q: the machine is too busy, or recall is broken", answers-got, answers, without)
	}
	return float64(got) / float64(max(answers, 1)), nil
}
