package embedded

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
)

// TestUnderstand_EmbedsOnce: a question is embedded once for its searches and its storing, and a
// request only if the group has facts, or values for a request about the person.
func TestUnderstand_EmbedsOnce(t *testing.T) {
	e := openEmbedded(t)
	own := ownEncoder(t)
	var mu sync.Mutex
	asked := map[string]int{}
	embed := own.embed
	own.embed = func(ctx context.Context, texts []string) ([][]int8, error) {
		mu.Lock()
		defer mu.Unlock()
		for _, text := range texts {
			asked[text]++
		}
		return embed(ctx, texts)
	}
	e.mean = startVectors(e.db, own, slog.New(slog.DiscardHandler))
	tell(t, e, "g", "a", "My cat Pixel just jumped on the table.", "Noted.")
	vectors := func(want int) {
		t.Helper()
		helptest.Until(t, "vectors of all messages", func() bool {
			var n int
			return e.db.QueryRow(t.Context(), "SELECT count(*) FROM vectors", nil, &n) == nil && n == want
		})
	}
	vectors(2)
	const said = "Pixel liegt bei mir, und wie heißt deine Katze? Meine Katze frisst nur Fisch."
	for _, query := range []string{"Wie heißt meine Katze?", "Wie heißt meine Katze?", "write the deploy script", said} {
		must(t, helptest.ErrorOf(e.Search(t.Context(), []string{"g"}, query, 5)))
	}
	tell(t, e, "g", "b", said, "Noted.")
	vectors(4)
	mu.Lock()
	defer mu.Unlock()
	for text, want := range map[string]int{"Wie heißt meine Katze?": 1, "write the deploy script": 1, said: 1} {
		if asked[text] != want {
			t.Errorf("%q is embedded %d times, want %d", text, asked[text], want)
		}
	}
}

// TestVectors_OfNewMessages: a new message's vector is added to those in RAM, and each message's is
// there once.
func TestVectors_OfNewMessages(t *testing.T) {
	e := openEmbedded(t)
	e.mean = startVectors(e.db, ownEncoder(t), slog.New(slog.DiscardHandler))
	const group = 1
	var held *groupVectors
	for i, text := range []string{"My cat Pixel likes fish.", "The staging database listens on port 5433.", "We deploy on Tuesdays."} {
		tell(t, e, "g", fmt.Sprint(i), text, "")
		helptest.Until(t, "the vector of "+text, func() bool {
			if !e.Compares() {
				return false
			}
			g, err := e.mean.of(t.Context(), group)
			return err == nil && len(g.vecs) == i+1
		})
		g, ok := e.mean.groups.Get(group)
		if !ok {
			t.Fatalf("after %q, no vectors are in RAM", text)
		}
		if held != nil && &held.vecs[0][0] != &g.vecs[1][0] {
			t.Errorf("after %q, the older vectors were read again", text)
		}
		held = g
	}
	for i := 1; i < len(held.places); i++ {
		if held.places[i-1] <= held.places[i] {
			t.Errorf("places %v, want descending ones", held.places)
		}
	}
	newest := &unreadMessage{id: group<<placeBits | held.places[0]}
	if _, size := held.with(newest, true); size != 0 {
		t.Errorf("a changed vector gives %d bytes, want none: all are read again", size)
	}
}
