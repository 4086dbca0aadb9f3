//go:build !darwin && !dragonfly && !freebsd && !linux && !netbsd && !openbsd && !windows

package datadir

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
)

const noFollow = 0 // unknown here

// lockDir does nothing on this system. The file in the directory is locked.
func lockDir(*os.File) error { return nil }

func unlockDir(*os.File) {}

// instanceOf names a directory by its path.
func instanceOf(dir *os.File) string {
	sum := sha256.Sum256([]byte("graphiti-proxy data_dir " + dir.Name()))
	return hex.EncodeToString(sum[:16])
}
