package sqlite

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"go.uber.org/goleak"

	"github.com/graphiti-proxy/graphiti-proxy/cache/database"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
)

var must = helptest.Must

const schema = "CREATE TABLE t (k INTEGER PRIMARY KEY, v TEXT) STRICT"

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

func open(t testing.TB, path string) *DB {
	t.Helper()
	d, err := Open(path, Options{Schema: schema, Version: 3, Sync: SyncNormal})
	must(t, err)
	t.Cleanup(func() { d.Close() })
	return d
}

func insert(k int) func(*database.Tx) error {
	return func(tx *database.Tx) error {
		_, err := tx.Exec("INSERT INTO t VALUES (?, 'v')", k)
		return err
	}
}

func count(t testing.TB, d *DB) int {
	t.Helper()
	var n int
	must(t, d.QueryRow(context.Background(), "SELECT count(*) FROM t", nil, &n))
	return n
}

// gather holds the writer until all writes are queued, so that they share a commit, and
// returns the error of each write.
func gather(t *testing.T, d *DB, writes []func(*database.Tx) error) []error {
	t.Helper()
	running, release, held := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		held <- d.Write(context.Background(), func(*database.Tx) error { close(running); <-release; return nil })
	}()
	<-running
	errs := make([]error, len(writes))
	var wg sync.WaitGroup
	for i, w := range writes {
		wg.Add(1)
		go func() { defer wg.Done(); errs[i] = d.Write(context.Background(), w) }()
	}
	for len(d.queue) < len(writes) {
		runtime.Gosched()
	}
	close(release)
	wg.Wait()
	must(t, <-held)
	return errs
}

// TestWriteThatFailsHurtsNoOther checks that a failing write does not affect the others in
// its commit.
func TestWriteThatFailsHurtsNoOther(t *testing.T) {
	d := open(t, filepath.Join(t.TempDir(), "x.db"))
	broken := errors.New("broken")
	var writes []func(*database.Tx) error
	for i := range 100 {
		writes = append(writes, func(tx *database.Tx) error {
			if err := insert(i)(tx); err != nil {
				return err
			}
			switch i % 10 {
			case 3:
				return broken
			case 7:
				panic("boom")
			}
			return nil
		})
	}
	for i, err := range gather(t, d, writes) {
		if want := i%10 == 3 || i%10 == 7; (err != nil) != want {
			t.Errorf("write %d: error %v, want an error: %v", i, err, want)
		}
		if i%10 == 3 && !errors.Is(err, broken) {
			t.Errorf("write %d: error %v, want %v", i, err, broken)
		}
	}
	if n := count(t, d); n != 80 {
		t.Errorf("%d rows, want 80", n)
	}
	// A failing write is rolled back if it is alone in its commit, too.
	if err := d.Write(context.Background(), writes[3]); !errors.Is(err, broken) {
		t.Errorf("a failing write alone: error %v, want %v", err, broken)
	}
	if n := count(t, d); n != 80 {
		t.Errorf("%d rows after one more failed, want 80", n)
	}
}

// TestCanceledWriteIsSkipped checks that a queued write does not run after its
// context ended, since its caller has received an error.
func TestCanceledWriteIsSkipped(t *testing.T) {
	d := open(t, filepath.Join(t.TempDir(), "x.db"))
	running, release, first := make(chan struct{}), make(chan struct{}), make(chan error)
	go func() {
		first <- d.Write(context.Background(), func(*database.Tx) error { close(running); <-release; return nil })
	}()
	<-running
	ctx, cancel := context.WithCancel(context.Background())
	second := make(chan error)
	go func() { second <- d.Write(ctx, insert(1)) }()
	for len(d.queue) < 1 {
		runtime.Gosched()
	}
	cancel()
	if err := <-second; !errors.Is(err, context.Canceled) {
		t.Errorf("a write whose context ended: error %v, want %v", err, context.Canceled)
	}
	close(release)
	if err := <-first; err != nil {
		t.Errorf("the write before it: error %v, want none", err)
	}
	must(t, d.Write(context.Background(), insert(2)))
	if n := count(t, d); n != 1 {
		t.Errorf("%d rows, want 1: the write that was waited for", n)
	}
}

func TestFilesAreForTheOwnerOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dir", "x.db")
	d := open(t, path)
	must(t, d.Write(context.Background(), insert(1)))
	for name, want := range map[string]os.FileMode{path: 0o600, path + "-wal": 0o600, filepath.Dir(path): 0o700} {
		info, err := os.Stat(name)
		must(t, err)
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o, want %o", filepath.Base(name), got, want)
		}
	}
}

// ofVersion returns a function that creates a database with a table and schema version n.
func ofVersion(n int) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		t.Helper()
		db, err := sql.Open("sqlite", "file:"+path)
		must(t, err)
		defer db.Close()
		must(t, helptest.ErrorOf(db.Exec(fmt.Sprintf("CREATE TABLE t (k); PRAGMA user_version = %d", n))))
	}
}

func TestFilesThatCannotBeOpened(t *testing.T) {
	garbage := []byte(strings.Repeat("this is no database ", 100))
	for _, tc := range []struct {
		name string
		make func(t *testing.T, path string)
		want string
	}{
		{"garbage", func(t *testing.T, path string) {
			must(t, os.WriteFile(path, garbage, 0o600))
		}, "it is unchanged"},
		{"newer version", ofVersion(9), "is of another version: its schema has version 9, this program's has 3"},
		{"older version", ofVersion(2), "is of another version: its schema has version 2, this program's has 3"},
		{"somebody else's", ofVersion(0), "is of another version: its schema has version 0, this program's has 3"},
		{"directory", func(t *testing.T, path string) {
			must(t, os.Mkdir(path, 0o700))
		}, "is a directory"},
		{"below a file", func(t *testing.T, path string) {
			must(t, os.Remove(filepath.Dir(path)))
			must(t, os.WriteFile(filepath.Dir(path), nil, 0o600))
		}, "create the directory"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.db")
			tc.make(t, path)
			before, _ := os.ReadFile(path) // nil without a file
			_, err := Open(path, Options{Schema: schema, Version: 3, Sync: SyncNormal})
			if err == nil || strings.Contains(err.Error(), "\n") || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("error %v, want one with %q and the path", err, tc.want)
			}
			if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
				t.Error("the file was changed")
			}
		})
	}
}

func TestClosedFileTakesNoWrites(t *testing.T) {
	d := open(t, filepath.Join(t.TempDir(), "x.db"))
	for range 2 {
		must(t, d.Close())
	}
	if err := d.Write(context.Background(), insert(1)); !errors.Is(err, database.ErrClosed) {
		t.Errorf("a write after Close: error %v, want %v", err, database.ErrClosed)
	}
}

// TestCheckpoint_DeletedText checks that Checkpoint removes deleted text from the file
// and from its log.
func TestCheckpoint_DeletedText(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	d := open(t, path)
	for _, q := range []string{"INSERT INTO t VALUES (1, 'xylophonist')", "INSERT INTO t VALUES (2, 'stays')", "DELETE FROM t WHERE k = 1"} {
		if err := d.Write(context.Background(), func(tx *database.Tx) error {
			tx.Checkpoint()
			_, err := tx.Exec(q)
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{path, path + "-wal"} {
		b, err := os.ReadFile(name)
		if err != nil || bytes.Contains(b, []byte("xylophonist")) {
			t.Errorf("%s holds the deleted text, or cannot be read: %v", filepath.Base(name), err)
		}
	}
	if n := count(t, d); n != 1 {
		t.Errorf("%d rows, want 1", n)
	}
}

// TestLogStaysShort checks that the log stays short under continuous writes.
func TestLogStaysShort(t *testing.T) {
	const writers, writes, size = 4, 200, 64 << 10
	path := filepath.Join(t.TempDir(), "test.db")
	d := open(t, path)
	defer d.Close()
	text := strings.Repeat("x", size)
	var longest atomic.Int64
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			for i := range writes {
				err := d.Write(t.Context(), func(tx *database.Tx) error {
					_, err := tx.Exec("INSERT INTO t VALUES (?, ?)", w*writes+i, text)
					return err
				})
				if err != nil {
					t.Errorf("a write of writer %d: %v", w, err)
				}
				if info, err := os.Stat(path + "-wal"); err == nil && info.Size() > longest.Load() {
					longest.Store(info.Size())
				}
			}
		})
	}
	all.Wait()
	if got := longest.Load(); got > 8*logMost*4096 {
		t.Errorf("the log grew to %d bytes of %d that were written, want %d at most", got, writers*writes*size, 8*logMost*4096)
	}
	if got := count(t, d); got != writers*writes {
		t.Errorf("%d rows, want %d", got, writers*writes)
	}
}

// TestCloseLeavesTheFileAlone checks that Close moves the log into the file, removes the
// log, and closes all descriptors of the file.
func TestCloseLeavesTheFileAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	d := open(t, path)
	must(t, d.Write(context.Background(), insert(1)))
	for range 2 { // the second count uses the prepared statement
		if n := count(t, d); n != 1 {
			t.Errorf("%d rows, want 1", n)
		}
	}
	must(t, d.Close())
	left, err := filepath.Glob(path + "*")
	if err != nil || len(left) != 1 {
		t.Errorf("files after Close: %q, %v; want the database alone", left, err)
	}
	descriptors, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Skip("what is open cannot be seen here")
	}
	for _, f := range descriptors {
		if to, err := os.Readlink("/proc/self/fd/" + f.Name()); err == nil && strings.HasPrefix(to, path) {
			t.Errorf("%s is still open after Close", filepath.Base(to))
		}
	}
}
