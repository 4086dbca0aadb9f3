package datadir

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"syscall"
)

// lockDir locks nothing: on Windows a locked file cannot be deleted, so it suffices.
func lockDir(*os.File) error { return nil }

func unlockDir(*os.File) {}

// instanceOf returns a name of a directory. A copy, or a new directory in its place, has
// another name. It is no secret.
func instanceOf(dir *os.File) string {
	var info syscall.ByHandleFileInformation
	if err := syscall.GetFileInformationByHandle(syscall.Handle(dir.Fd()), &info); err != nil {
		return ""
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "graphiti-proxy data_dir %d %d %d", info.VolumeSerialNumber, info.FileIndexHigh, info.FileIndexLow))
	return hex.EncodeToString(sum[:16])
}
