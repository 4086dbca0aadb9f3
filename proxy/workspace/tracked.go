package workspace

import (
	"bytes"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"strings"
)

// maxIndex is the most bytes of git's index that are read.
const maxIndex = 256 << 20

// Tracks reports whether git tracks a file, so that it may have come with the repository, or
// whether that is unknown. It reads git's index: to run git in a stranger's repository could run
// the stranger's programs.
func Tracks(file string) bool {
	file, err := filepath.EvalSymlinks(file)
	if err != nil {
		return true
	}
	for at := filepath.Dir(file); ; at = filepath.Dir(at) {
		if info, err := os.Lstat(filepath.Join(at, ".git")); err == nil {
			git, _, ok := gitDir(at, info)
			path, err := filepath.Rel(at, file)
			return !ok || err != nil || indexHas(filepath.Join(git, "index"), filepath.ToSlash(path))
		}
		if at == filepath.Dir(at) {
			return false
		}
	}
}

// indexHas reports whether an index has a path, in any case, or is not understood.
func indexHas(index, path string) bool {
	f, err := os.Open(index)
	if os.IsNotExist(err) {
		return false
	}
	if err != nil {
		return true
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxIndex))
	const header, fixed = 12, 62 // bytes before the entries, and before an entry's path
	if err != nil || len(b) < header || !bytes.HasPrefix(b, []byte("DIRC\x00\x00\x00")) || b[7] != 2 && b[7] != 3 {
		return true // version 4 shortens paths
	}
	count := binary.BigEndian.Uint32(b[8:])
	for b = b[header:]; count > 0; count-- {
		if len(b) < fixed {
			return true
		}
		from := fixed
		if b[fixed-2]&0x40 != 0 { // more flags
			from += 2
		}
		n := bytes.IndexByte(b[min(from, len(b)):], 0)
		if n < 0 || strings.EqualFold(string(b[from:from+n]), path) {
			return true
		}
		b = b[min((from+n)/8*8+8, len(b)):]
	}
	return bytes.HasPrefix(b, []byte("link")) // another file has further entries
}
