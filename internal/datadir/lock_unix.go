//go:build darwin || dragonfly || freebsd || linux || netbsd || openbsd

package datadir

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// noFollow makes an open fail for a link, and return at once for a pipe.
const noFollow = unix.O_NOFOLLOW | unix.O_NONBLOCK

// lockDir locks a directory. On file systems without directory locks, such as NFS, the
// lock on the file must suffice.
func lockDir(dir *os.File) error {
	err := unix.Flock(int(dir.Fd()), unix.LOCK_EX|unix.LOCK_NB) // #nosec G115 -- a descriptor
	switch {
	case errors.Is(err, unix.EWOULDBLOCK):
		return ErrInUse
	case errors.Is(err, unix.EBADF), errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOTSUP), errors.Is(err, unix.ENOLCK), errors.Is(err, unix.ENOSYS):
		return nil
	}
	return err
}

// unlockDir unlocks a directory immediately. Closing the descriptor is not enough: a
// child process that is just starting has inherited it.
func unlockDir(dir *os.File) { _ = unix.Flock(int(dir.Fd()), unix.LOCK_UN) } // #nosec G115 -- a descriptor
