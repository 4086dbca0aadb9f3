package embedded

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestAgreed: the nearest statement needs the words of the question where its likeness alone does
// not suffice.
func TestAgreed(t *testing.T) {
	for name, tc := range map[string]struct {
		scores  []float64 // of the places 1, 2, 3
		byWords map[int64]float64
		want    []likely
	}{
		"words and meaning":            {[]float64{0.2, 0.1, 0.05}, map[int64]float64{1: 0.06}, []likely{{1, 0.2}}},
		"together below the floor":     {[]float64{0.2, 0.1, 0.05}, map[int64]float64{1: 0.04}, nil},
		"words of another statement":   {[]float64{0.2, 0.1, 0.05}, map[int64]float64{2: 0.2}, nil},
		"nearer to a routine request":  {[]float64{0.1, 0.05, 0}, map[int64]float64{1: 0.24}, nil},
		"the nearest states nothing":   {[]float64{0.1, 0.2, 0.3}, map[int64]float64{2: 0.1}, []likely{{2, 0.2}}},
		"no statement of the question": {[]float64{0.2, 0.1, 0.05}, nil, nil},
	} {
		states := func(place int64) bool { return place != 3 }
		got := agreed([]int64{1, 2, 3}, tc.scores, states, tc.byWords, 0.25, 0.15)
		if diff := cmp.Diff(tc.want, got, cmp.AllowUnexported(likely{})); diff != "" {
			t.Errorf("%s: (-want +got):\n%s", name, diff)
		}
	}
}
