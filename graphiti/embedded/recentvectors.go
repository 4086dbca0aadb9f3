package embedded

import (
	"context"
	"hash/maphash"
	"strings"

	"github.com/graphiti-proxy/graphiti-proxy/internal/memo"
)

// mostRecentVectors bounds recentVectors: 224 KiB for the models of this program.
const mostRecentVectors = 256

// recentVectors are the vectors of the newest embedded texts, by digests of the texts' words.
// A question is compared in each group, and stored with its turn, but embedded once. It is
// safe for concurrent use.
type recentVectors struct {
	seed maphash.Seed
	*memo.LRU[uint64, []int8]
}

func newRecentVectors() *recentVectors {
	return &recentVectors{maphash.MakeSeed(), memo.NewLRU[uint64, []int8](mostRecentVectors)}
}

// embed returns the vectors of texts, from RAM if possible.
func (r *recentVectors) embed(ctx context.Context, texts []string, by *encoder) ([][]int8, error) {
	out := make([][]int8, len(texts))
	digests := make([]uint64, len(texts))
	var missing []string
	var of []int
	for i, text := range texts {
		digests[i] = maphash.String(r.seed, strings.Join(strings.Fields(text), " "))
		if vec, ok := r.Get(digests[i]); ok {
			out[i] = vec
		} else {
			missing, of = append(missing, text), append(of, i)
		}
	}
	if len(missing) == 0 {
		return out, nil
	}
	vecs, err := by.embed(ctx, missing)
	if err != nil {
		return nil, err
	}
	for i, vec := range vecs {
		out[of[i]] = vec
		r.Add(digests[of[i]], vec, 1)
	}
	return out, nil
}
