package workspace

import (
	"fmt"
	"io/fs"
	"syscall"
)

// birthOf returns when a file was created; empty if it is not known.
func birthOf(_ string, info fs.FileInfo) string {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return fmt.Sprintf("%d.%09d", s.Birthtimespec.Sec, s.Birthtimespec.Nsec)
	}
	return ""
}
