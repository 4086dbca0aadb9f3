package ledger

import (
	"context"
	"path/filepath"
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
		kept      bool
	}{
		{"the same answer", []string{id}, []string{"other-0123456789-0123", id}, false, false},
		{"the same answer, forgotten", []string{id}, []string{id}, true, false},
		{"another answer", []string{id}, []string{"msg_zzzzzzzzzzzzzzzzzzzz"}, false, true},
		{"an id that does not identify", []string{short}, []string{short}, false, true},
		{"no ids", nil, nil, false, true},
	} {
		s, err := Open(filepath.Join(t.TempDir(), "spool.db"))
		if err != nil {
			t.Fatal(err)
		}
		live, old := spoken("live", "g"), spoken("old", "g")
		live.Keys, old.Keys, old.Backfill, old.User = c.live, c.old, true, "the same in other words"
		if _, err = s.Add(context.Background(), []Turn{live}, time.Now()); err == nil && c.forgotten {
			_, err = s.Forget(Part{Group: "g"}, 1, true)
			old.Generation = 1
		}
		if err != nil {
			t.Fatal(err)
		}
		added, err := s.Add(context.Background(), []Turn{old}, time.Now())
		if err != nil || (len(added[0].Groups) > 0) != c.kept {
			t.Errorf("%s: got %+v, %v; want kept %v", c.name, added, err, c.kept)
		}
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	}
}
