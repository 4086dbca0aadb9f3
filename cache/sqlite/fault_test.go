package sqlite

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/cache/database"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
)

// TestFullDiskIsNoticedAndMended checks that a full disk is reported as a passing fault,
// leaves the file readable, and is cleared by Check, without another write, once space is
// free.
func TestFullDiskIsNoticedAndMended(t *testing.T) {
	d := open(t, filepath.Join(t.TempDir(), "x.db"))
	full := true
	err := d.Write(context.Background(), func(*database.Tx) error {
		return nil
	})
	if err != nil || d.Fault() != nil {
		t.Fatalf("an empty write: %v, fault %v; want none", err, d.Fault())
	}
	limit := func(n string) {
		t.Helper()
		if err := d.Write(context.Background(), func(tx *database.Tx) error {
			var n2 int
			return tx.QueryRow("PRAGMA max_page_count = " + n).Scan(&n2)
		}); err != nil {
			t.Fatal(err)
		}
	}
	limit("2")
	for k := 0; full && k < 10000; k++ {
		if err := d.Write(context.Background(), insert(k)); err != nil {
			if !IsFault(err) {
				t.Fatalf("write %d: %v, want a Fault", k, err)
			}
			full = false
		}
	}
	wrong := d.Fault()
	if wrong == nil || wrong.Lasting() || wrong.Kind != database.Unwritten {
		t.Fatalf("the fault of a full file: %v, want %s", wrong, database.Unwritten)
	}
	if n := count(t, d); n == 0 {
		t.Error("0 rows are read from a full file, want those that were written")
	}
	if again := d.Check(); again != nil && again.Since != wrong.Since {
		t.Errorf("Check changed since when it is: %v, want %v", again.Since, wrong.Since)
	}
	limit("1000")
	if wrong := d.Check(); wrong != nil {
		t.Errorf("Check when there is room again: %v, want nil", wrong)
	}
}

// TestDamageIsNoticed checks that a read that meets damage marks the file as damaged, and
// that writes fail from then on.
func TestDamageIsNoticed(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	d := open(t, path)
	for k := range 3000 {
		must(t, d.Write(context.Background(), insert(k)))
	}
	d.Close()
	d = open(t, path)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	info, _ := f.Stat()
	noise := make([]byte, info.Size()-4096)
	_, _ = rand.Read(noise)
	must(t, helptest.ErrorOf(f.WriteAt(noise, 4096)))
	f.Close()
	var n int
	if err := d.QueryRow(context.Background(), "SELECT count(*) FROM t", nil, &n); err == nil {
		t.Fatalf("a read of a damaged file: %d rows, want an error", n)
	}
	if wrong := d.Check(); !wrong.Lasting() || wrong.Kind != database.Damaged {
		t.Errorf("Check of a damaged file: %v, want %s", wrong, database.Damaged)
	}
	var wrong *database.Fault
	if err := d.Write(context.Background(), insert(9999)); !errors.As(err, &wrong) || wrong.Kind != database.Damaged {
		t.Errorf("a write to a damaged file: %v, want a Fault: %s", err, database.Damaged)
	}
}

// TestFaultsNameTheirCause checks that errors of the operating system are not taken for
// damage, and that no remedy asks the operator to move an intact file.
func TestFaultsNameTheirCause(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	for _, tc := range []struct {
		kind database.FaultKind
		err  error
		want database.FaultKind
		says string
	}{
		{database.Damaged, &fs.PathError{Op: "read", Path: path, Err: syscall.EIO}, database.Failing, "do not move the file"},
		{database.Denied, syscall.EIO, database.Failing, "dmesg"},
		{database.Gone, &fs.PathError{Op: "stat", Path: path, Err: syscall.EIO}, database.Failing, "do not move the file"},
		{database.Unwritten, fmt.Errorf("write: %w", syscall.EIO), database.Unwritten, "dmesg"},
		{database.Denied, syscall.EROFS, database.Denied, "read-only"},
		{database.Denied, syscall.ENOSPC, database.Denied, "make room"},
		{database.Denied, fs.ErrPermission, database.Denied, "let the proxy's user read and write"},
		{database.Denied, errors.New("is a directory"), database.Denied, "move it away"},
		{database.Unwritten, errors.New("for a reason that nobody knows"), database.Unwritten, "make room"},
		{database.Damaged, errors.New("it is not a database"), database.Damaged, "move it away"},
		{database.Gone, &fs.PathError{Op: "stat", Path: path, Err: fs.ErrNotExist}, database.Gone, "restart the proxy"},
	} {
		got := newFault(path, tc.kind, tc.err, "everything")
		if got.Kind != tc.want || !strings.Contains(got.Remedy, tc.says) || got.Kind == database.Failing && strings.Contains(got.Remedy, "away") {
			t.Errorf("newFault(%s, %v): %s, %v; want %s with the remedy %q", tc.kind, tc.err, got.Kind, got, tc.want, tc.says)
		}
	}
}
