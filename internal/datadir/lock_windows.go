package datadir

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"syscall"
)

const noFollow = 0 // unknown here

// lockDir does nothing: the locked file suffices, because Windows cannot delete it.
func lockDir(*os.File) error { return nil }

func unlockDir(*os.File) {}

// instanceOf returns an identifier of a directory. A copy or replacement has another
// identifier. It is not a secret.
func instanceOf(dir *os.File) string {
	var info syscall.ByHandleFileInformation
	if err := syscall.GetFileInformationByHandle(syscall.Handle(dir.Fd()), &info); err != nil {
		return ""
	}
	sum := sha256.Sum256(fmt.Appendf(nil, "graphiti-proxy data_dir %d %d %d", info.VolumeSerialNumber, info.FileIndexHigh, info.FileIndexLow))
	return hex.EncodeToString(sum[:16])
}
