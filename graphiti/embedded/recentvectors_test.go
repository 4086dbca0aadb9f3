package embedded

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
)

// TestRecentVectors: a text is embedded once, whatever its spaces, until many others came or it
// is forgotten. A failure is not kept.
func TestRecentVectors(t *testing.T) {
	var asked []string
	var fails error
	by := &encoder{embed: func(_ context.Context, texts []string) ([][]int8, error) {
		asked = append(asked, texts...)
		out := make([][]int8, len(texts))
		for i, text := range texts {
			out[i] = []int8{int8(len(text))} //nolint:gosec // short
		}
		return out, fails
	}}
	r := newRecentVectors()
	embed := func(texts ...string) []string {
		t.Helper()
		asked = nil
		vecs, err := r.embed(t.Context(), texts, by)
		if !errors.Is(err, fails) {
			t.Fatalf("embed = %v, want %v", err, fails)
		}
		for i, vec := range vecs {
			if len(vec) != 1 {
				t.Errorf("the vector of %q is %v, want one value", texts[i], vec)
			}
		}
		return asked
	}
	fails = errors.New("down")
	embed("the car")
	fails = nil
	others := make([]string, mostRecentVectors)
	for i := range others {
		others[i] = fmt.Sprint("text ", i)
	}
	for _, step := range []struct {
		name        string
		texts, want []string
	}{
		{"after a failure", []string{"the car"}, []string{"the car"}},
		{"again", []string{"the car"}, nil},
		{"with other spaces", []string{"the\n\n car "}, nil},
		{"with other words", []string{"thecar", "the car", "the cat"}, []string{"thecar", "the cat"}},
		{"many others", others, others},
		{"after many others", []string{"the car"}, []string{"the car"}},
		{"the newest of these", others[1:], nil},
	} {
		if got := embed(step.texts...); !slices.Equal(got, step.want) {
			t.Errorf("%s: the encoder gets %q, want %q", step.name, got, step.want)
		}
		if len(r.of) > mostRecentVectors || len(r.order) != len(r.of) {
			t.Errorf("%s: %d vectors in an order of %d, want at most %d", step.name, len(r.of), len(r.order), mostRecentVectors)
		}
	}
	r.drop()
	if got := embed("the car"); len(got) != 1 {
		t.Errorf("after the drop, the encoder gets %q, want the text", got)
	}
}
