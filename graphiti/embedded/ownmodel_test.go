package embedded

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/internal/polltest"
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

// TestUnderstand: the model of this program finds statements in another language than the
// question, and is silent for routine questions and for requests.
func TestUnderstand(t *testing.T) {
	e, err := Open(filepath.Join(t.TempDir(), "memory.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	m, err := sentence.Load()
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Understand(m, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	for i, said := range []string{
		"My cat Pixel just jumped on the table.", "The exam is on the 8th of February.", "We deploy on Fridays at noon.",
		"Kunden mit Sitz in der Schweiz bekommen keine Umsatzsteuer.", "The server in the cellar has 64 GB.", "Anna leads the design team.",
		"The printer is in room 12.", "We close at eleven in the evening.", "The header test fails since yesterday.", "Should we rename the tests?",
	} {
		tell(t, e, "g", string(rune('a'+i)), said, "Your cat is called Pixel, I know.")
	}
	stored := func() (vectors, empty int) {
		const query = "SELECT count(*), coalesce(sum(length(vec) = 0), 0) FROM vectors"
		if err := e.db.Each(t.Context(), query, nil, func(scan func(...any) error) error { return scan(&vectors, &empty) }); err != nil {
			t.Fatal(err)
		}
		return vectors, empty
	}
	polltest.Until(t, "vectors of all messages", func() bool { n, _ := stored(); return n == 20 })
	if _, empty := stored(); empty != 11 {
		t.Errorf("%d messages have an empty vector, want 11: the question and the model's messages", empty)
	}
	for question, want := range map[string]string{
		"Wie heißt meine Katze?":                "Pixel",
		"Wann ist die Prüfung?":                 "8th of February",
		"What about Swiss clients and the VAT?": "Schweiz",
		"Why is this so slow?":                  "",
		"Rename it, Katze.":                     "",
		"Ποιος μας πάει παγάκια;":               "",
		"What is the capital of Peru?":          "",
	} {
		facts, err := e.Search(t.Context(), []string{"g"}, question, 5)
		if err != nil {
			t.Fatal(err)
		}
		var got string
		for _, f := range facts {
			got += f.Text + "\n"
		}
		if want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("Search(%q) = %q, want %q", question, got, want)
		}
	}
}

// TestQuestion_OneAtATime: a second question waits for the first one, until its deadline.
func TestQuestion_OneAtATime(t *testing.T) {
	v := &vectors{asking: make(chan struct{}, 1)}
	begun, goOn := make(chan struct{}), make(chan struct{})
	v.embed = func(context.Context, []string) ([][]int8, error) {
		close(begun)
		<-goOn
		return [][]int8{{1}}, nil
	}
	first := make(chan error)
	go func() {
		_, err := v.question(t.Context(), "first")
		first <- err
	}()
	<-begun
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := v.question(ctx, "second"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("second question = %v, want %v", err, context.DeadlineExceeded)
	}
	close(goOn)
	if err := <-first; err != nil {
		t.Errorf("first question = %v, want no error", err)
	}
}
