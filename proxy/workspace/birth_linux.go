package workspace

import (
	"fmt"
	"io/fs"

	"golang.org/x/sys/unix"
)

// birthOf returns when a file was created, which no archive and no copy can choose;
// empty if the file system does not record it.
func birthOf(path string, _ fs.FileInfo) string {
	var s unix.Statx_t
	err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BTIME, &s)
	if err != nil || s.Mask&unix.STATX_BTIME == 0 {
		return ""
	}
	return fmt.Sprintf("%d.%09d", s.Btime.Sec, s.Btime.Nsec)
}
