package sqlite

import (
	"database/sql"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"
)

func TestJobsThatWaitAreTakenTogether(t *testing.T) {
	d := newDB("", Options{})
	for range maxBatch + 5 {
		d.queue <- &job{}
	}
	for _, want := range []int{maxBatch, 5, 0} {
		if got := len(d.gather(nil)); got != want {
			t.Errorf("%d jobs at once, want %d", got, want)
		}
	}
}

// TestReadersRest checks that an idle file closes its read connections, and can be used again
// afterwards.
func TestReadersRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, err := Open(filepath.Join(t.TempDir(), "a.db"), Options{Schema: "CREATE TABLE t (v TEXT) STRICT", Version: 1, Sync: SyncNormal})
		must(t, err)
		defer d.Close()
		for range 2 {
			rows := -1
			if err := d.QueryRow(t.Context(), "SELECT count(*) FROM t", nil, &rows); err != nil || rows != 0 {
				t.Fatalf("%d rows, %v; want none", rows, err)
			}
			if d.read.Stats().OpenConnections == 0 {
				t.Fatal("no connection is open")
			}
			time.Sleep(3 * restAfter)
			synctest.Wait()
			if open := d.read.Stats().OpenConnections; open != 0 {
				t.Errorf("after a rest %d connections are open, want none", open)
			}
		}
	})
}

// TestAReaderMakesNoFile checks that a reader does not create a missing file.
func TestAReaderMakesNoFile(t *testing.T) {
	db, err := sql.Open("sqlite", dsn(filepath.Join(t.TempDir(), "gone.db"), SyncNormal, true))
	must(t, err)
	defer db.Close()
	if err := db.PingContext(t.Context()); err == nil {
		t.Error("a reader can open a file that does not exist: it has created it")
	}
}
