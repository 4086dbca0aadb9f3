package sqlite

import (
	"database/sql"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestLateWritesShareACommit(t *testing.T) {
	for _, tc := range []struct {
		name   string
		late   []time.Duration // start of each late write
		prompt time.Duration   // start of another write, or 0 for none
		took   []time.Duration // duration of each late write
	}{
		{"alone", []time.Duration{0}, 0, []time.Duration{linger}},
		{"with later ones", []time.Duration{0, linger / 4, linger / 2}, 0, []time.Duration{linger, linger * 3 / 4, linger / 2}},
		{"with one that cannot wait", []time.Duration{0, linger / 4}, linger / 2, []time.Duration{linger / 2, linger / 4}},
		{"after one that cannot wait", []time.Duration{linger / 2}, linger / 4, []time.Duration{linger}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d, err := Open(filepath.Join(t.TempDir(), "a.db"), Options{Schema: "CREATE TABLE t (v TEXT) STRICT", Version: 1, Sync: SyncNormal})
				if err != nil {
					t.Fatal(err)
				}
				defer d.Close()
				var all sync.WaitGroup
				for i, at := range tc.late {
					all.Go(func() {
						time.Sleep(at)
						begin, done := time.Now(), make(chan struct{})
						queued := d.WriteAsync(func(*Tx) error { return nil }, func() { close(done) })
						if <-done; !queued || time.Since(begin) != tc.took[i] {
							t.Errorf("late write %d took %s, queued: %v; want %s", i, time.Since(begin), queued, tc.took[i])
						}
					})
				}
				if tc.prompt > 0 {
					time.Sleep(tc.prompt)
					begin := time.Now()
					if err := d.Write(t.Context(), func(*Tx) error { return nil }); err != nil || time.Since(begin) != 0 {
						t.Errorf("the other write took %s with the error %v, want none", time.Since(begin), err)
					}
				}
				all.Wait()
			})
		})
	}
}

func TestJobsThatWaitAreTakenTogether(t *testing.T) {
	d := newDB("", Options{})
	for range maxBatch + 5 {
		d.queue <- &job{}
	}
	if batch, open := d.gather(nil); len(batch) != maxBatch || !open || len(d.wake) != 1 {
		t.Errorf("%d jobs at once, open %t, %d signals for more; want %d, true, 1", len(batch), open, len(d.wake), maxBatch)
	}
	close(d.queue)
	if batch, open := d.gather(nil); len(batch) != 5 || open {
		t.Errorf("%d jobs when the queue is closed, open %t; want 5, false", len(batch), open)
	}
}

// TestReadersRest checks that an idle file closes its read connections, and can be used again
// afterwards.
func TestReadersRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, err := Open(filepath.Join(t.TempDir(), "a.db"), Options{Schema: "CREATE TABLE t (v TEXT) STRICT", Version: 1, Sync: SyncNormal})
		if err != nil {
			t.Fatal(err)
		}
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
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.PingContext(t.Context()); err == nil {
		t.Error("a reader can open a file that does not exist: it has created it")
	}
}
