package datadir

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// maxOwn is the most bytes of a small file of the directory.
const maxOwn = 64 << 10

// openOwn opens a small file of the directory. It follows no link and accepts only a regular
// file: other users may be able to write to the directory, and a proxy of root must not write
// to their link's target, or wait for their pipe.
func openOwn(path string, flag int) (*os.File, error) {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() { // where noFollow is 0
		return nil, notRegular(path)
	}
	f, err := os.OpenFile(path, flag|noFollow, 0o600) // #nosec G304 -- our own file
	if err != nil {
		return nil, err
	}
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		_ = f.Close()
		return nil, notRegular(path)
	}
	return f, nil
}

func notRegular(path string) error {
	return fmt.Errorf("%s is a link or no regular file; remove it", filepath.Base(path))
}

// readOwn returns the content of a small file of the directory.
func readOwn(path string) ([]byte, error) { return ReadFile(path, maxOwn) }

// ReadFile returns the content of a file of the directory with at most most bytes.
func ReadFile(path string, most int64) ([]byte, error) {
	f, err := openOwn(path, os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if int64(len(b)) > most {
		return nil, fmt.Errorf("%s has more than %d bytes", filepath.Base(path), most)
	}
	return b, err
}

// WriteFile replaces a small file, which only the proxy's user can read. After a power
// loss it has either its old or its new content, never a part.
func WriteFile(path string, b []byte) (err error) {
	dir := filepath.Dir(path)
	f, err := os.CreateTemp(dir, "."+filepath.Base(path)+"-*") // 0600
	if err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	_, err = f.Write(b)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return fmt.Errorf("write %s: %w", path, err)
	}
	if err := syncDir(dir); err != nil {
		return fmt.Errorf("write %s: %w", path, err)
	}
	return nil
}
