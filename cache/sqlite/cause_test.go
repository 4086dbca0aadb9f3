package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestFaultsNameTheirCause checks that errors of the operating system are not taken for
// damage, and that no remedy asks the operator to move an intact file.
func TestFaultsNameTheirCause(t *testing.T) {
	path := filepath.Join(t.TempDir(), "x.db")
	for _, tc := range []struct {
		kind FaultKind
		err  error
		want FaultKind
		says string
	}{
		{Damaged, &fs.PathError{Op: "read", Path: path, Err: syscall.EIO}, Failing, "do not move the file"},
		{Denied, syscall.EIO, Failing, "dmesg"},
		{Gone, &fs.PathError{Op: "stat", Path: path, Err: syscall.EIO}, Failing, "do not move the file"},
		{Unwritten, fmt.Errorf("write: %w", syscall.EIO), Unwritten, "dmesg"},
		{Denied, syscall.EROFS, Denied, "read-only"},
		{Denied, syscall.ENOSPC, Denied, "make room"},
		{Denied, fs.ErrPermission, Denied, "let the proxy's user read and write"},
		{Denied, errors.New("is a directory"), Denied, "move it away"},
		{Unwritten, errors.New("for a reason that nobody knows"), Unwritten, "make room"},
		{Damaged, errors.New("it is not a database"), Damaged, "move it away"},
		{Gone, &fs.PathError{Op: "stat", Path: path, Err: fs.ErrNotExist}, Gone, "restart the proxy"},
	} {
		got := newFault(path, tc.kind, tc.err, "everything")
		if got.Kind != tc.want || !strings.Contains(got.Remedy, tc.says) || got.Kind == Failing && strings.Contains(got.Remedy, "away") {
			t.Errorf("newFault(%s, %v): %s, %v; want %s with the remedy %q", tc.kind, tc.err, got.Kind, got, tc.want, tc.says)
		}
	}
}
