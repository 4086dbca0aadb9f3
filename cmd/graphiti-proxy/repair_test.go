package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// TestRepair: what can be read of a damaged file is there when the new one is
// put in its place, the damaged one is what it was, and what is lost is told.
func TestRepair(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"state.db", "spool.db", "memory.db"} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			dir, set := t.TempDir(), usesOf(t, file)
			w := start(t, dir, set)
			w.say(fact)
			for i := range 40 {
				w.say(fmt.Sprintf("My plant number %d is a fern. %s", i, strings.Repeat("It is green. ", 40)))
			}
			w.delivered(41)
			w.stop()
			path := filepath.Join(dir, file)
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			last := len(b) - 4096 // a page of what was written last
			for i := range 4096 {
				b[last+i] = byte(i*7 + 3)
			}
			if err := os.WriteFile(path, b, 0o600); err != nil {
				t.Fatal(err)
			}
			before := contents(t, dir, file)
			out, err := command(t, dir, "repair", file, "--json", "--set", "data_dir="+dir)
			if err != nil {
				t.Fatal(err)
			}
			var done []service.Repaired
			if err := json.Unmarshal([]byte(out), &done); err != nil || len(done) != 1 || done[0].New != path+".repaired" {
				t.Fatalf("got %s, %v, want one file repaired", out, err)
			}
			after := contents(t, dir, file)
			delete(after, file+".repaired")
			if !equalMaps(before, after) {
				t.Errorf("the damaged file was changed: %v, %v", sizesOf(before), sizesOf(after))
			}
			if _, err := command(t, dir, "repair", file, "--set", "data_dir="+dir); err == nil || !strings.Contains(err.Error(), "there already") {
				t.Errorf("repaired twice: %v", err)
			}
			rows := 0
			for _, table := range done[0].Tables {
				rows += table.Rows
			}
			t.Logf("%+v", done[0].Tables)
			if rows < 40 {
				t.Errorf("%d rows: %+v", rows, done)
			}
			for _, end := range []string{"", "-wal", "-shm"} {
				_ = os.Rename(path+end, path+end+".away")
			}
			if err := os.Rename(path+".repaired", path); err != nil {
				t.Fatal(err)
			}
			w = start(t, dir, set)
			if answer, header, _ := w.say(question); !strings.Contains(answer, "Miso") {
				t.Errorf("got %q, %s, want \"Miso\" in it", answer, header)
			}
			if q := w.app.memory.queue(); q.Delivered < 41 {
				t.Errorf("got %+v, want Delivered at least 41", q)
			}
		})
	}
}
