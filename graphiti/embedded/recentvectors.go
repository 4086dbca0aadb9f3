package embedded

import (
	"context"
	"hash/maphash"
	"strings"
	"sync"
)

// mostRecentVectors bounds recentVectors: 128 KiB for the model of this program.
const mostRecentVectors = 256

// recentVectors are the vectors of the newest embedded texts, by digests of the texts' words.
// A question is compared in each group, and stored with its turn, but embedded once. It is
// safe for concurrent use.
type recentVectors struct {
	seed maphash.Seed

	mu    sync.Mutex // guards the fields below
	of    map[uint64][]int8
	order []uint64 // a ring, the oldest at next
	next  int
}

func newRecentVectors() *recentVectors {
	return &recentVectors{seed: maphash.MakeSeed(), of: make(map[uint64][]int8)}
}

// digest returns a number for the words of a text, which ignores the spaces between them.
func (r *recentVectors) digest(text string) uint64 {
	var h maphash.Hash
	h.SetSeed(r.seed)
	for word := range strings.FieldsSeq(text) {
		_, _ = h.WriteString(word) // cannot fail
		_ = h.WriteByte(' ')
	}
	return h.Sum64()
}

// embed returns the vectors of texts, from RAM if possible.
func (r *recentVectors) embed(ctx context.Context, texts []string, by *encoder) ([][]int8, error) {
	out := make([][]int8, len(texts))
	digests := make([]uint64, len(texts))
	for i, text := range texts {
		digests[i] = r.digest(text)
	}
	var missing []string
	var of []int
	r.mu.Lock()
	for i, text := range texts {
		if out[i] = r.of[digests[i]]; out[i] == nil {
			missing, of = append(missing, text), append(of, i)
		}
	}
	r.mu.Unlock()
	if len(missing) == 0 {
		return out, nil
	}
	vecs, err := by.embed(ctx, missing)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i, vec := range vecs {
		out[of[i]] = vec
		r.keepLocked(digests[of[i]], vec)
	}
	return out, nil
}

func (r *recentVectors) keepLocked(digest uint64, vec []int8) {
	switch {
	case r.of[digest] != nil: // a repeated text
	case len(r.order) < mostRecentVectors:
		r.order = append(r.order, digest)
	default:
		delete(r.of, r.order[r.next])
		r.order[r.next], r.next = digest, (r.next+1)%mostRecentVectors
	}
	r.of[digest] = vec
}

// drop forgets all vectors.
func (r *recentVectors) drop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	clear(r.of)
	r.order, r.next = nil, 0
}
