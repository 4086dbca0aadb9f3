package sqlite

import (
	"database/sql"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	driver "modernc.org/sqlite"
)

// TestWhatIsInNoHurryWaitsForCompany: as long as nothing comes that is in a
// hurry, and no longer than said.
func TestWhatIsInNoHurryWaitsForCompany(t *testing.T) {
	for _, tc := range []struct {
		name  string
		after []time.Duration // jobs that come, each half of linger after the one before: how patient they are
		first time.Duration   // how patient the first one is
		took  time.Duration
		jobs  int
	}{
		{"in a hurry", nil, 0, 0, 1},
		{"alone", nil, linger, linger, 1},
		{"with others that have time", []time.Duration{linger, linger}, linger, linger, 2},
		{"with one that has none", []time.Duration{0, linger}, linger, linger / 2, 2},
	} {
		t.Run(tc.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := &DB{queue: make(chan *job, maxWaiting)}
				done := make(chan struct{})
				go func() {
					defer close(done)
					for _, patience := range tc.after {
						<-time.After(linger / 2)
						d.queue <- &job{patience: patience}
					}
				}()
				begin := time.Now()
				batch := d.gather([]*job{{patience: tc.first}})
				if took := time.Since(begin); took != tc.took || len(batch) < tc.jobs || len(batch) > tc.jobs+1 {
					t.Errorf("%d jobs after %s, want %d or one more after %s", len(batch), took, tc.jobs, tc.took)
				}
				<-done
			})
		})
	}
}

func TestJobsThatWaitAreTakenTogether(t *testing.T) {
	d := &DB{queue: make(chan *job, maxWaiting)}
	for range maxBatch + 5 {
		d.queue <- &job{patience: linger}
	}
	if n := len(d.gather([]*job{<-d.queue})); n != maxBatch {
		t.Errorf("%d jobs at once, want %d", n, maxBatch)
	}
	close(d.queue)
	if n := len(d.gather([]*job{<-d.queue})); n != 5 {
		t.Errorf("%d jobs when the queue is closed, want 5", n)
	}
}

func TestEnoughJobsDoNotWaitForMore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &DB{queue: make(chan *job, maxWaiting)}
		for range enough {
			d.queue <- &job{patience: linger}
		}
		begin := time.Now()
		if n := len(d.gather([]*job{<-d.queue})); n != enough || time.Since(begin) != 0 {
			t.Errorf("%d jobs after %s, want %d at once", n, time.Since(begin), enough)
		}
	})
}

// pagesOf is how many bytes a connection holds pages in.
func pagesOf(t *testing.T, c *sql.Conn) (bytes int) {
	t.Helper()
	err := c.Raw(func(c any) (err error) {
		bytes, _, err = c.(driver.DBStatus).Status(driver.DBStatusCacheUsed, false) //nolint:forcetypeassert // the driver's only type
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return bytes
}

// TestPagesAreGivenBack when nobody uses the file for a while; it can be used
// then as before.
func TestPagesAreGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, err := Open(filepath.Join(t.TempDir(), "a.db"), Options{Schema: "CREATE TABLE t (v TEXT) STRICT", Version: 1, Sync: SyncNormal})
		if err != nil {
			t.Fatal(err)
		}
		defer d.Close()
		var conn *sql.Conn // the writer's
		use := func() (rows int) {
			t.Helper()
			err := d.Write(t.Context(), func(tx *Tx) error {
				conn = tx.conn
				_, err := tx.Exec("INSERT INTO t VALUES (?)", strings.Repeat("x", 1<<20))
				return err
			})
			if err == nil && pagesOf(t, conn) < 512<<10 { // before a reader may take them
				t.Fatalf("the writer holds %d bytes of pages after a write of 1 MiB, want half of it at least", pagesOf(t, conn))
			}
			if err == nil {
				err = d.QueryRow(t.Context(), "SELECT count(*) FROM t WHERE v > 'a'", nil, &rows)
			}
			if err != nil {
				t.Fatal(err)
			}
			return rows
		}
		for n := range 2 {
			if rows := use(); rows != n+1 {
				t.Fatalf("%d rows, want %d", rows, n+1)
			}
			if d.read.Stats().OpenConnections == 0 {
				t.Fatal("no connection is open")
			}
			time.Sleep(3 * restAfter)
			synctest.Wait()
			if bytes, open := pagesOf(t, conn), d.read.Stats().OpenConnections; bytes > 64<<10 || open != 0 {
				t.Errorf("after a rest %d bytes are held, %d connections open; want up to %d, none", bytes, open, 64<<10)
			}
		}
	})
}

// TestAReaderMakesNoFile where the one is gone that it was to read.
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
