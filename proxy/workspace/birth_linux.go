package workspace

import (
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
)

// birthOf returns the time of a file's creation; empty if the file system does not record
// it. An archive or a copy cannot set this time.
func birthOf(path string, _ fs.FileInfo) string {
	var s unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BTIME, &s)
	if err != nil || s.Mask&unix.STATX_BTIME == 0 {
		return ""
	}
	return fmt.Sprintf("%d.%09d", s.Btime.Sec, s.Btime.Nsec)
}
