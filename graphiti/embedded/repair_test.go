package embedded

import (
	"database/sql"
	"path/filepath"
	"testing"
)

// TestRepairedGroupsFitTheirMessages checks that a repaired store finds the remaining
// messages, continues a conversation at its end, and has no message of a lost group.
func TestRepairedGroupsFitTheirMessages(t *testing.T) {
	path := filepath.Join(t.TempDir(), "memory.db")
	e, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	tell(t, e, "lost", "0", "The xylophonist is called Tom.", "Noted.")
	talk(t, e, "s", said, "Ann", "My cat is called Miso.", "Ann", "My dog is called Rex.")
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file:"+path)
	if err == nil {
		_, err = db.Exec("PRAGMA foreign_keys = OFF; DELETE FROM groups WHERE name = 'lost'; DELETE FROM messages WHERE content LIKE '%Rex%'")
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := Repair.Run(t.Context(), path, path+".repaired"); err != nil {
		t.Fatal(err)
	}
	if e, err = Open(path + ".repaired"); err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	talk(t, e, "s", said, "Ann", "My bird is called Kiwi.")
	if got := search(t, e, "g", "What is my cat called?"); len(got) == 0 || got[0] != "Ann, 2026-03-02: My cat is called Miso." {
		t.Errorf("found %q, want the cat first", got)
	}
	var messages, apart int
	if err := e.db.QueryRow(t.Context(), "SELECT count(*), max(id) - min(id) FROM messages", nil, &messages, &apart); err != nil {
		t.Fatal(err)
	}
	if messages != 2 || apart != 1 {
		t.Errorf("%d messages, %d apart; want 2, 1", messages, apart)
	}
	if n := found(t, path+".repaired"); n > 0 {
		t.Errorf("the lost group is %d times in the file", n)
	}
}
