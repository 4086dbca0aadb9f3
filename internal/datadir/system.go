//go:build !windows

package datadir

import (
	"errors"
	"os"
	"syscall"
)

// noFollow makes an open fail for a link, and return at once for a pipe.
const noFollow = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// syncDir makes a new name in a directory durable, where its file system can.
func syncDir(path string) error {
	d, err := os.Open(path) // #nosec G304 -- the data directory
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, syscall.EINVAL) || errors.Is(err, syscall.ENOTSUP) {
		err = nil
	}
	return errors.Join(err, d.Close())
}
