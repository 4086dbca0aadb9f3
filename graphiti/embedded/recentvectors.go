package embedded

import (
	"context"
	"hash/maphash"
	"strings"

	"github.com/graphiti-proxy/graphiti-proxy/internal/memo"
)

// mostRecentVectors bounds recentVectors: 128 KiB for the model of this program.
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
	for i, text := range texts {
		digests[i] = maphash.String(r.seed, strings.Join(strings.Fields(text), " "))
	}
	var missing []string
	var of []int
	r.Each(digests, func(i int, vec []int8, ok bool) {
		if out[i] = vec; !ok {
			missing, of = append(missing, texts[i]), append(of, i)
		}
	})
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
