package embedded

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
)

// older makes a file as the version before the index in memory did, with so
// many messages of one group.
func older(t *testing.T, messages int) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "memory.db")
	db, err := sqlite.Open(path, sqlite.Options{Migrations: sqlite.Migrations(schemas)[:3], Sync: sqlite.SyncFull})
	if err != nil {
		t.Fatal(err)
	}
	err = db.Write(t.Context(), func(tx *sqlite.Tx) error {
		if _, err := tx.Exec("INSERT INTO groups (id, name, size) VALUES (7, 'g', ?)", messages); err != nil {
			return err
		}
		for i := range messages {
			id, text := int64(7)<<placeBits|int64(i+1), fmt.Sprintf("The xylophonist%d plays %s.", i, strings.Repeat(fmt.Sprintf("note%d ", i), 8))
			if _, err := tx.Exec("INSERT INTO messages VALUES (?, 7, ?, 'user', 'Ann', ?, '{}', 1767225600000, 0)", id, fmt.Sprint(i), text); err != nil {
				return err
			}
			words := make([]string, 0, 8)
			for _, w := range strings.Fields(text) {
				words = append(words, "7q"+strings.ToLower(strings.Trim(w, ".")))
			}
			if _, err := tx.Exec("INSERT INTO words (rowid, content) VALUES (?, ?)", id, strings.Join(words, " ")); err != nil {
				return err
			}
		}
		_, err := tx.Exec("INSERT INTO speakers VALUES (7, 'Ann')")
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestIndexOfAnOlderVersion: what was kept is found, and the index that the
// file had goes in the background, or before anything is forgotten, with all
// that it held; an end meanwhile is continued.
func TestIndexOfAnOlderVersion(t *testing.T) {
	for _, tc := range []struct {
		name     string
		messages int
		use      func(t *testing.T, e *Store)
		left     bool // messages
	}{
		{"small", 3, func(*testing.T, *Store) {}, true},
		{"large", 20_000, func(_ *testing.T, e *Store) { e.old.Wait() }, true},
		{"large, and the end comes first", 20_000, func(*testing.T, *Store) {}, true},
		{"large, and all is forgotten at once", 20_000, func(t *testing.T, e *Store) {
			if err := e.Forget(t.Context(), "g"); err != nil {
				t.Error(err)
			}
		}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := older(t, tc.messages)
			for again := range 2 {
				e, err := Open(path)
				if err != nil {
					t.Fatal(err)
				}
				if again == 0 {
					if got := search(t, e, "g", "Who plays note2?"); len(got) == 0 || !strings.HasPrefix(got[0], "Ann, 2026-01-01: The xylophonist2 plays note2") {
						t.Errorf("found %q", got)
					}
					tc.use(t, e)
				} else {
					e.old.Wait()
					var tables int
					if err := e.db.QueryRow(context.Background(), "SELECT count(*) FROM sqlite_master WHERE name LIKE 'words%' OR name = 'speakers'", nil, &tables); err != nil || tables > 0 {
						t.Errorf("%d tables are left, %v", tables, err)
					}
				}
				if err := e.Close(); err != nil {
					t.Fatal(err)
				}
			}
			if n := found(t, path); tc.left && n < tc.messages || !tc.left && n > 0 {
				t.Errorf("%d times in the files", n)
			}
		})
	}
}
