package sqlite

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/cache/database"
)

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
