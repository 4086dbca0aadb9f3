package workspace

import (
	"fmt"
	"io/fs"
	"syscall"
)

// birthOf returns the time of a file's creation; empty if unknown.
func birthOf(_ string, info fs.FileInfo) string {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprintf("%d.%09d", s.Birthtimespec.Sec, s.Birthtimespec.Nsec)
	}
	return ""
}
