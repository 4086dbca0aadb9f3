//go:build unix

package workspace

import (
	"fmt"
	"io/fs"
	"syscall"
)

// fileOwner is the user whom a file belongs to.
type fileOwner uint32

func ownerOf(info fs.FileInfo) fileOwner {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return fileOwner(s.Uid)
	}
	return 0
}

// inodeOf tells a directory from another one that stands at the same path
// later.
func inodeOf(info fs.FileInfo) string {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprintf("%d:%d", s.Dev, s.Ino)
	}
	return ""
}
