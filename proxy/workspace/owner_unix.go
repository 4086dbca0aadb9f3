//go:build unix

package workspace

import (
	"fmt"
	"io/fs"
	"syscall"
)

// fileOwner is the id of a file's owner.
type fileOwner uint32

func ownerOf(info fs.FileInfo) fileOwner {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return fileOwner(s.Uid)
	}
	return 0
}

// inodeOf returns the device and inode of a file. They distinguish a directory from a
// later one at the same path.
func inodeOf(info fs.FileInfo) string {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprintf("%d:%d", s.Dev, s.Ino)
	}
	return ""
}
