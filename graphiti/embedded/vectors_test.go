package embedded

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
)

// meanings are the words that a fake embeddings endpoint knows. Words with the same meaning
// have the same dimension.
var meanings = [][]string{{"car", "automobile", "vehicle"}, {"doctor", "physician"}, {"happy", "glad"}, {"house", "home"}, {"cat", "feline"}}

type embedder struct {
	*httptest.Server
	fault atomic.Int32 // 1: refuses, 2: hangs, 3: lies
	calls atomic.Int32
}

func newEmbedder(t *testing.T) *embedder {
	e := &embedder{}
	e.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		e.calls.Add(1)
		switch e.fault.Load() {
		case 1:
			http.Error(w, "no", http.StatusServiceUnavailable)
			return
		case 2:
			_, _ = io.Copy(io.Discard, r.Body) // otherwise the server does not notice that the client disconnects
			<-r.Context().Done()
			return
		case 3:
			_, _ = w.Write([]byte(`{"data":[{"index":7,"embedding":[]}]}`))
			return
		}
		var in struct{ Input []string }
		if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
			t.Error(err)
		}
		var data []map[string]any
		for i, text := range in.Input {
			v := make([]float64, len(meanings)+1)
			v[len(meanings)] = 0.1
			for d, words := range meanings {
				for _, word := range words {
					if strings.Contains(strings.ToLower(text), word) {
						v[d] = 1
					}
				}
			}
			data = append(data, map[string]any{"index": i, "embedding": v})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"data": data})
	}))
	t.Cleanup(e.Close)
	return e
}

// TestMeaning checks that words with the same meaning are found in old and in new messages,
// that a failing endpoint does not affect the search by words, and that neither finds a
// forgotten message.
func TestMeaning(t *testing.T) {
	path := filepath.Join(t.TempDir(), "memory.db")
	e, err := Open(path)
	must(t, err)
	tell(t, e, "g", "1", "I sold my automobile in spring.", "")
	must(t, e.Close())
	if e, err = Open(path); err != nil {
		t.Fatal(err)
	}
	endpoint := newEmbedder(t)
	t.Cleanup(func() { e.Close() }) // runs before the endpoint's Close
	e.Embed(Embedding{URL: endpoint.URL, Model: "m"}, slog.New(slog.DiscardHandler))
	tell(t, e, "other", "3", "An automobile of somebody else.", "")
	tell(t, e, "g", "2", "The physician was late.", "")
	finds := func(question, want string) bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		facts, err := e.Search(ctx, []string{"g"}, question, 5)
		must(t, err)
		return len(facts) > 0 && facts[0].Strength >= enough && strings.Contains(facts[0].Text, want) && !strings.Contains(facts[0].Text, "somebody else")
	}
	within := func(question, want string) {
		t.Helper()
		helptest.Until(t, want, func() bool { return finds(question, want) })
	}
	within("Where is the car?", "automobile")
	within("Is there a doctor?", "physician")
	e.Pause(true)
	calls := endpoint.calls.Load()
	tell(t, e, "g", "5", "Her feline is grey.", "")
	if finds("Where is the car?", "") || !finds("When was the automobile sold?", "automobile") || endpoint.calls.Load() != calls {
		t.Errorf("%d calls while paused", endpoint.calls.Load()-calls)
	}
	e.Pause(false)
	within("Where is the car?", "automobile")
	within("What about the cat?", "feline")
	for fault := range int32(4) {
		endpoint.fault.Store(fault)
		if !finds("When was the automobile sold?", "automobile") {
			t.Errorf("fault %d: words do not find what they found", fault)
		}
	}
	endpoint.fault.Store(1)
	calls = endpoint.calls.Load()
	tell(t, e, "g", "4", "Our home is by the lake.", "")
	helptest.Until(t, "a call that fails", func() bool { return endpoint.calls.Load() > calls })
	endpoint.fault.Store(0)
	within("Which house?", "home")
	for name, text := range map[string]string{"6": "My automobile has a dent.", "7": "The old vehicle stays in the garage."} {
		calls = endpoint.calls.Load()
		tell(t, e, "g", name, text, "")
		helptest.Until(t, "a call for "+text, func() bool { return endpoint.calls.Load() > calls })
	}
	helptest.Until(t, "what means a car", func() bool {
		facts, err := e.Search(t.Context(), []string{"g"}, "Where is the car?", 5)
		return err == nil && len(facts) > 0 && facts[0].Strength >= enough && (strings.Contains(facts[0].Text, "vehicle") || strings.Contains(facts[0].Text, "automobile"))
	})
	calls = endpoint.calls.Load()
	if finds("Is the happy one glad?", "") {
		t.Error("a question like no statement finds one")
	}
	if finds("Wash the car.", "") || !finds("When was the automobile sold?", "automobile") || endpoint.calls.Load() != calls+1 {
		t.Errorf("%d more calls; want 1, for the question whose words find nothing", endpoint.calls.Load()-calls)
	}
	must(t, e.Forget(t.Context(), "g"))
	if finds("Where is the car?", "") {
		t.Error("what was forgotten is found")
	}
}
