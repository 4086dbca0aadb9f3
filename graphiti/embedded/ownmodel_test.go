package embedded

import (
	"os"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/internal/sentence"
)

// ownEncoder returns the encoder of this program.
func ownEncoder(t *testing.T) encoder {
	t.Helper()
	m, err := sentence.Load()
	if err != nil {
		t.Fatal(err)
	}
	return encoderOf(m)
}

// TestOwnRoutine: the vectors in the file are those of the routine requests. UPDATE=1 writes
// the file.
func TestOwnRoutine(t *testing.T) {
	vecs, err := ownEncoder(t).embed(t.Context(), routineRequests)
	if err != nil {
		t.Fatal(err)
	}
	var want []byte
	for _, v := range vecs {
		want = append(want, bytesOf(v)...)
	}
	if os.Getenv("UPDATE") != "" {
		if err := os.WriteFile("routine.bin", want, 0o644); err != nil { //nolint:gosec // a source file
			t.Fatal(err)
		}
		return
	}
	if len(ownRoutine) != len(want) {
		t.Fatalf("routine.bin has %d bytes, want %d; run the test with UPDATE=1", len(ownRoutine), len(want))
	}
	for i := range routineRequests { // the last bit may differ between processors
		got := int8sOf(ownRoutine[i*sentence.Dimensions : (i+1)*sentence.Dimensions])
		if l := likeness(got, vecs[i]); l < 0.98 {
			t.Errorf("likeness of routine.bin to %q = %.3f, want 1; run the test with UPDATE=1", routineRequests[i], l)
		}
	}
}
