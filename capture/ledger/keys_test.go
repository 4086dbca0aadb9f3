package ledger

import (
	"context"
	"testing"
	"time"
)

func TestBackfill_KnownAnswer(t *testing.T) {
	t.Parallel()
	const id, short = "msg_0123456789abcdefghij", "chatcmpl-512"
	for _, c := range []struct {
		name      string
		live, old []string // keys
		forgotten bool
		off       bool // memory was off for the live turn
		kept      bool
	}{
		{"the same answer", []string{id}, []string{"other-0123456789-0123", id}, false, false, false},
		{"the same answer, forgotten", []string{id}, []string{id}, true, false, false},
		{"another answer", []string{id}, []string{"msg_zzzzzzzzzzzzzzzzzzzz"}, false, false, true},
		{"an id that does not identify", []string{short}, []string{short}, false, false, true},
		{"the same answer, not stored", []string{id}, []string{id}, false, true, false},
		{"no ids", nil, nil, false, false, true},
	} {
		s, err := openAny(t)
		must(t, err)
		live, old := spoken("live", "g"), spoken("old", "g")
		live.Keys, old.Keys, old.Backfill, old.User = c.live, c.old, true, "the same in other words"
		if c.off {
			err = s.CutOff(context.Background(), &live, time.Now())
		} else {
			_, err = s.Add(context.Background(), []Turn{live}, time.Now())
		}
		if err == nil && c.forgotten {
			err = s.Forget(Part{Group: "g"}, 1)
			old.Generation = 1
		}
		must(t, err)
		added, err := s.Add(context.Background(), []Turn{old}, time.Now())
		if err != nil || (len(added[0].Groups) > 0) != c.kept {
			t.Errorf("%s: got %+v, %v; want kept %v", c.name, added, err, c.kept)
		}
		must(t, s.Close())
	}
}

func TestImport_SameTexts(t *testing.T) {
	t.Parallel()
	s, err := openAny(t)
	must(t, err)
	t.Cleanup(func() { _ = s.Close() })
	add := func(id, texts string, backfill bool, imported string) (kept bool) {
		t.Helper()
		turn := spoken(texts, "g")
		turn.ID, turn.Backfill, turn.Import = id, backfill, imported
		added, err := s.Add(context.Background(), []Turn{turn}, time.Now())
		must(t, err)
		return len(added[0].Groups) > 0
	}
	for _, c := range []struct {
		name, id, texts    string
		backfill, imported bool
		kept               bool
	}{
		{"a live turn", "live", "x", false, false, true},
		{"its import", "import-1", "x", true, true, false},
		{"an imported turn", "import-2", "y", true, true, true},
		{"an imported turn with its texts", "import-3", "y", true, true, true},
		{"the import again", "import-3", "y", true, true, false},
		{"a live history with its texts", "history", "y", true, false, false},
		{"a live history alone", "history-2", "z", true, false, true},
		{"its transcript", "import-4", "z", true, true, false},
	} {
		imported := ""
		if c.imported {
			imported = "hash"
		}
		if kept := add(c.id, c.texts, c.backfill, imported); kept != c.kept {
			t.Errorf("%s: got kept %v, want %v", c.name, kept, c.kept)
		}
	}
}
