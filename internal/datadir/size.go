package datadir

import (
	"os"
	"path/filepath"
)

// Size returns the bytes of a directory's databases and their logs. It leaves out backups.
func Size(dir string) (bytes int64) {
	files, _ := filepath.Glob(filepath.Join(dir, "*.db*")) // fails only for another pattern
	for _, name := range files {
		if info, err := os.Stat(name); err == nil {
			bytes += info.Size()
		}
	}
	return bytes
}
