package sqlite

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"go.uber.org/goleak"
)

var schema = []string{"CREATE TABLE t (k INTEGER PRIMARY KEY, v TEXT) STRICT"}

func TestMain(m *testing.M) {
	if path := os.Getenv("SQLITE_TEST_CHILD"); path != "" {
		writeUntilKilled(path)
	}
	goleak.VerifyTestMain(m)
}

func open(t testing.TB, path string) *DB {
	t.Helper()
	d, err := Open(path, Options{Migrations: schema, Sync: SyncNormal})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func insert(k int) func(*Tx) error {
	return func(tx *Tx) error {
		_, err := tx.Exec("INSERT INTO t VALUES (?, 'v')", k)
		return err
	}
}

func count(t testing.TB, d *DB) int {
	t.Helper()
	var n int
	if err := d.Read().QueryRow("SELECT count(*) FROM t").Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

// TestWriteThatFailsHurtsNoOther, though they share a commit.
func TestWriteThatFailsHurtsNoOther(t *testing.T) {
	d := open(t, filepath.Join(t.TempDir(), "x.db"))
	ctx := context.Background()
	broken := errors.New("broken")
	var wg sync.WaitGroup
	for i := range 100 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			err := d.Write(ctx, func(tx *Tx) error {
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
			if want := i%10 == 3 || i%10 == 7; (err != nil) != want {
				t.Errorf("write %d: %v", i, err)
			}
			if i%10 == 3 && !errors.Is(err, broken) {
				t.Errorf("write %d: %v", i, err)
			}
		}()
	}
	wg.Wait()
	if n := count(t, d); n != 80 {
		t.Errorf("%d rows, want 80", n)
	}
}

func TestFilesAreForTheOwnerOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "dir", "x.db")
	d := open(t, path)
	if err := d.Write(context.Background(), insert(1)); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]os.FileMode{path: 0o600, path + "-wal": 0o600, filepath.Dir(path): 0o700} {
		info, err := os.Stat(name)
		if err != nil {
			t.Fatal(err)
		}
		if got := info.Mode().Perm(); got != want {
			t.Errorf("%s has mode %o, want %o", filepath.Base(name), got, want)
		}
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
			if err := os.WriteFile(path, garbage, 0o600); err != nil {
				t.Fatal(err)
			}
		}, "was left as it is"},
		{"newer version", func(t *testing.T, path string) {
			d, err := Open(path, Options{Migrations: append(schema, "CREATE TABLE u (x)"), Sync: SyncNormal})
			if err != nil {
				t.Fatal(err)
			}
			d.Close()
		}, "newer graphiti-proxy"},
		{"directory", func(t *testing.T, path string) {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}, "is a directory"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "x.db")
			tc.make(t, path)
			_, err := Open(path, Options{Migrations: schema, Sync: SyncNormal})
			if err == nil || !strings.Contains(err.Error(), tc.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("error %v, want one with %q and the path", err, tc.want)
			}
			if b, err := os.ReadFile(path); tc.name == "garbage" && (err != nil || !bytes.Equal(b, garbage)) {
				t.Error("the file was changed")
			}
		})
	}
}

// TestFullDiskIsAnErrorAndPasses: SQLite's own page limit stands for the disk.
func TestFullDiskIsAnErrorAndPasses(t *testing.T) {
	d := open(t, filepath.Join(t.TempDir(), "x.db"))
	ctx := context.Background()
	limit := func(n int) {
		t.Helper()
		if err := d.Write(ctx, func(tx *Tx) error {
			rows, err := tx.Query(fmt.Sprintf("PRAGMA max_page_count = %d", n))
			if err == nil {
				err = rows.Close()
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	big := func(tx *Tx) error {
		_, err := tx.Exec("INSERT INTO t (v) VALUES (?)", strings.Repeat("x", 1<<20))
		return err
	}
	limit(10)
	if err := d.Write(ctx, big); err == nil || !strings.Contains(err.Error(), "full") {
		t.Errorf("error %v", err)
	}
	limit(1 << 20)
	if err := d.Write(ctx, big); err != nil {
		t.Errorf("after there was room again: %v", err)
	}
}

func TestClosedFileTakesNoWrites(t *testing.T) {
	d := open(t, filepath.Join(t.TempDir(), "x.db"))
	for range 2 {
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if err := d.Write(context.Background(), insert(1)); !errors.Is(err, ErrClosed) {
		t.Errorf("error %v", err)
	}
}

// TestKillLosesNothingAcknowledged: a process that is killed at any moment
// leaves every write that it had been told of.
func TestKillLosesNothingAcknowledged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "SQLITE_TEST_CHILD="+path)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	said := 0
	for b := make([]byte, 64); said < 500; {
		n, err := out.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		said += bytes.Count(b[:n], []byte("\n"))
	}
	_ = cmd.Process.Kill()
	_ = cmd.Wait()
	if n := count(t, open(t, path)); n < said {
		t.Errorf("%d rows, %d were acknowledged", n, said)
	}
}

func writeUntilKilled(path string) {
	d, err := Open(path, Options{Migrations: schema, Sync: SyncNormal})
	if err != nil {
		panic(err)
	}
	for i := range 1 << 20 {
		if err := d.Write(context.Background(), insert(i)); err != nil {
			panic(err)
		}
		fmt.Println(i)
	}
}

func BenchmarkWrite(b *testing.B) {
	for _, s := range []Sync{SyncNormal, SyncFull} {
		for _, parallel := range []bool{false, true} {
			b.Run(fmt.Sprintf("%s/parallel=%v", s, parallel), func(b *testing.B) {
				d, err := Open(filepath.Join(b.TempDir(), "x.db"), Options{Migrations: schema, Sync: s})
				if err != nil {
					b.Fatal(err)
				}
				defer d.Close()
				write := func() {
					if err := d.Write(context.Background(), func(tx *Tx) error {
						_, err := tx.Exec("INSERT INTO t (v) VALUES ('v')")
						return err
					}); err != nil {
						b.Error(err)
					}
				}
				b.ReportAllocs()
				b.ResetTimer()
				if !parallel {
					for b.Loop() {
						write()
					}
					return
				}
				b.SetParallelism(64)
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						write()
					}
				})
			})
		}
	}
}
