package datadir

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// changes makes the system report when something in a directory, the directory itself,
// or one above it is deleted, moved or made. The channel is nil when it cannot. end
// ends the reports.
func changes(dir string) (changed <-chan struct{}, end func()) {
	none := func() {}
	dir, err := filepath.Abs(dir)
	if err != nil {
		return nil, none
	}
	fd, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		return nil, none
	}
	events := os.NewFile(uintptr(fd), "inotify")
	what := uint32(unix.IN_CREATE | unix.IN_DELETE | unix.IN_MOVE | unix.IN_DELETE_SELF | unix.IN_MOVE_SELF)
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := unix.InotifyAddWatch(fd, at, what); err != nil {
			_ = events.Close()
			return nil, none
		}
		if at == filepath.Dir(at) {
			break
		}
		what = unix.IN_DELETE_SELF | unix.IN_MOVE_SELF
	}
	reported, ended := make(chan struct{}, 1), make(chan struct{})
	// Ends when end closes events.
	go func() {
		defer close(ended)
		for b := make([]byte, 4096); ; {
			if _, err := events.Read(b); err != nil {
				return
			}
			select {
			case reported <- struct{}{}:
			default: // a second report would say nothing new
			}
		}
	}()
	return reported, func() {
		_ = events.Close()
		<-ended
	}
}
