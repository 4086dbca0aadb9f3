package embedded

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
)

// TestRankEqualsPlainSum checks that rank returns the same places and scores as a
// plain sum over every place of the group.
func TestRankEqualsPlainSum(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 200 {
		size := 1 + r.Int64N(400)
		terms := make([]term, 1+r.IntN(maxTerms))
		for n := range terms {
			terms[n] = term{word: fmt.Sprint(n), idf: 0.1 + r.Float64(), name: r.IntN(8) == 0}
			for p := int64(1); p <= size; p++ {
				if r.IntN(4+40*n) == 0 {
					terms[n].places = append(terms[n].places, p)
				}
			}
		}
		var want []scored
		for q := int64(1); q <= size+reach; q++ {
			sum, near, whole := 0.0, 0.0, 0.0
			for n := range terms {
				has, talk := 0.0, false
				for _, p := range terms[n].places {
					if d := q - p; d >= -reach && d <= reach {
						has += beside[d+reach]
					}
					talk = talk || max(q-p, p-q) <= sameConversation
				}
				sum += terms[n].weight(&Fitted) * has * (Fitted.Saturation + 1) / (has + Fitted.Saturation)
				if !terms[n].name {
					whole += terms[n].idf
					if talk {
						near += terms[n].idf
					}
				}
			}
			if sum > 0 && whole > 0 {
				sum *= 1 + Fitted.Conversation*near/whole
			}
			if sum > 0 {
				want = append(want, scored{q, sum})
			}
		}
		slices.SortFunc(want, func(a, b scored) int { return cmp.Compare(b.score, a.score) })
		const most = 1000 // more than exist, because a cut comes before the conversation changes the order
		got := rank(&Fitted, terms, most)
		slices.SortFunc(got, func(a, b ranked) int { return cmp.Compare(b.score, a.score) })
		if len(got) != len(want) {
			t.Fatalf("%d places, want %d", len(got), len(want))
		}
		for i := range got {
			if math.Abs(got[i].score-want[i].score) > 1e-9 {
				t.Fatalf("place %d is worth %f, want %f of %d", got[i].place, got[i].score, want[i].score, want[i].place)
			}
		}
	}
}

func TestBestOf(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range 500 {
		all := make([]scored, r.IntN(300))
		for i := range all {
			all[i] = scored{int64(i + 1), float64(r.IntN(1 + r.IntN(100)))}
		}
		most := r.IntN(100) + 1
		want := slices.SortedFunc(slices.Values(all), func(a, b scored) int {
			return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.place, a.place))
		})
		want = want[:min(len(want), most)]
		got := bestOf(all, most, &[]float64{})
		slices.SortFunc(got, func(a, b scored) int {
			return cmp.Or(cmp.Compare(b.score, a.score), cmp.Compare(b.place, a.place))
		})
		if !slices.Equal(got, want) {
			t.Fatalf("the best %d are %v, want %v", most, got, want)
		}
	}
}
