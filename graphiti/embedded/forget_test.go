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
// neither while it is open nor after it is closed.
func TestForgottenWordsAreInNoFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "memory.db")
	e, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	tell(t, e, "h", "1", "something else stays", "ok")
	tell(t, e, "g", "2", "I am a xylophonist", "ok")
	tell(t, e, "h", "3", "and so does this", "ok")
	if found(t, path) == 0 {
		t.Fatal("it was never there")
	}
	if err := e.Forget(context.Background(), "g"); err != nil {
		t.Fatal(err)
	}
	if n := found(t, path); n > 0 {
		t.Errorf("%d times in the files", n)
	}
	if got := search(t, e, "h", "what stays?"); len(got) != 1 {
		t.Errorf("another group finds %q", got)
	}
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	if n := found(t, path); n > 0 {
		t.Errorf("%d times in the files after the end", n)
	}
}

// TestGroupNumbersAreNotUsedAgain checks that a new group never gets the number of a
// forgotten one, because a running search may still use it.
func TestGroupNumbersAreNotUsedAgain(t *testing.T) {
	e, ctx := openEmbedded(t), context.Background()
	tell(t, e, "g", "1", "mine", "ok")
	first, _, err := e.group(ctx, "g")
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Forget(ctx, "g"); err != nil {
		t.Fatal(err)
	}
	tell(t, e, "another", "2", "theirs", "ok")
	if second, ok, err := e.group(ctx, "another"); err != nil || !ok || second == first {
		t.Errorf("number %d after %d, %v", second, first, err)
	}
}

// TestForgottenEpisodesAreInNoFile checks that forgotten messages are in no file, and that
// a new message with a reused number inherits no words of a forgotten one.
func TestForgottenEpisodesAreInNoFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "memory.db")
	e, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	tell(t, e, "g", "1", "the lamp stays", "ok")
	tell(t, e, "g", "2", "I am a xylophonist", "ok")
	if found(t, path) == 0 {
		t.Fatal("it was never there")
	}
	ctx := context.Background()
	if _, err := e.ForgetEpisodes(ctx, "g", func(e *graphiti.Row) bool { return strings.Contains(e.Source, `"2"`) }); err != nil {
		t.Fatal(err)
	}
	if n := found(t, path); n > 0 {
		t.Errorf("%d times in the files", n)
	}
	tell(t, e, "g", "3", "this is new", "ok")
	if got := search(t, e, "g", "who is a xylophonist?"); len(got) > 0 {
		t.Errorf("found %q", got)
	}
	if got := search(t, e, "g", "what stays?"); len(got) == 0 {
		t.Error("the others are not found any more")
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
		if err != nil {
			t.Fatal(err)
		}
		n += bytes.Count(bytes.ToLower(b), []byte("xylophonist"))
	}
	return n
}
