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

// inodeOf returns device and inode, which tell a directory from one that is made
// at the same path later.
func inodeOf(info fs.FileInfo) string {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprintf("%d:%d", s.Dev, s.Ino)
	}
	return ""
}
