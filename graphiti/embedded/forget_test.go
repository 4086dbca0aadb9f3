package embedded

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
)

// TestForgottenWordsAreInNoFile checks that forgotten words are in no file of the store,
// neither while it is open nor after it is closed, that the others are found, and that a new
// message with a reused number inherits no words of a forgotten one.
func TestForgottenWordsAreInNoFile(t *testing.T) {
	of := func(turn string) func(*graphiti.Row) bool {
		return func(r *graphiti.Row) bool { return strings.Contains(r.Source, `"`+turn+`"`) }
	}
	for name, tc := range map[string]struct {
		say    func(t *testing.T, e *Store)
		forget func(ctx context.Context, e *Store) error
	}{
		"a group":    {func(t *testing.T, e *Store) { tell(t, e, "h", "2", "I am a xylophonist", "ok") }, func(ctx context.Context, e *Store) error { return e.Forget(ctx, "h") }},
		"an episode": {func(t *testing.T, e *Store) { tell(t, e, "g", "2", "I am a xylophonist", "ok") }, func(ctx context.Context, e *Store) error { _, err := e.ForgetEpisodes(ctx, "g", of("2")); return err }},
		"the message of a fact": {
			func(t *testing.T, e *Store) {
				say(t, e, "g", "2", "I play", "ok")
				distil(t, e, graphiti.Distilled{Text: "The person is a xylophonist", Keys: []string{"xylophonist"}, About: "xylophonist"})
			},
			func(ctx context.Context, e *Store) error { _, err := e.ForgetEpisodes(ctx, "g", of("2")); return err },
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "memory.db")
			e, err := Open(path)
			must(t, err)
			t.Cleanup(func() { e.Close() })
			e.Distil(func() {})
			if tc.say(t, e); found(t, path) == 0 {
				t.Fatal("it was never there")
			}
			tell(t, e, "g", "1", "the lamp stays", "ok")
			if err := tc.forget(t.Context(), e); err != nil || found(t, path) > 0 {
				t.Errorf("%d times in the files, %v", found(t, path), err)
			}
			tell(t, e, "g", "3", "this is new", "ok")
			if got := search(t, e, "g", "who is a xylophonist?"); len(got) > 0 {
				t.Errorf("found %q", got)
			}
			if got := search(t, e, "g", "what stays?"); len(got) == 0 {
				t.Error("the others are not found any more")
			}
			if err := e.Close(); err != nil || found(t, path) > 0 {
				t.Errorf("%d times in the files after the end, %v", found(t, path), err)
			}
		})
	}
}

// TestGroupNumbersAreNotUsedAgain checks that a new group never gets the number of a
// forgotten one, because a running search may still use it.
func TestGroupNumbersAreNotUsedAgain(t *testing.T) {
	e, ctx := openEmbedded(t), context.Background()
	tell(t, e, "g", "1", "mine", "ok")
	first, _, err := e.group(ctx, "g")
	must(t, err)
	must(t, e.Forget(ctx, "g"))
	tell(t, e, "another", "2", "theirs", "ok")
	if second, ok, err := e.group(ctx, "another"); err != nil || !ok || second == first {
		t.Errorf("number %d after %d, %v", second, first, err)
	}
}

// found returns the number of occurrences of the forgotten word in all files of the store,
// in upper or lower case.
func found(t *testing.T, path string) (n int) {
	t.Helper()
	files, err := filepath.Glob(path + "*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, f := range files {
		b, err := os.ReadFile(f)
		must(t, err)
		n += bytes.Count(bytes.ToLower(b), []byte("xylophonist"))
	}
	return n
}
