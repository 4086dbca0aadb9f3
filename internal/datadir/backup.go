package datadir

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
)

// backedUp are the databases of a data directory that a backup has, and alsoBackedUp the other files.
// The proxy rebuilds or replaces all others.
var (
	backedUp     = []string{"memory.db", "state.db"}
	alsoBackedUp = []string{"owner", "secret", "projects.json"}
)

// maxBackedUp bounds the bytes of a file that is no database.
const maxBackedUp = 64 << 20

// WriteBackup writes the files of a data directory, which a proxy may use, to a new file, as they are at
// one moment. Only the owner can read it. It checks the copy.
func WriteBackup(ctx context.Context, dir, path string) (err error) {
	if _, err := os.Stat(path); err == nil {
		return fmt.Errorf("%s exists; name another file", path)
	}
	work, err := os.MkdirTemp(filepath.Dir(path), ".backup-*")
	if err != nil {
		return fmt.Errorf("write a backup: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	var from, to []string
	for _, name := range backedUp {
		if _, err := os.Stat(filepath.Join(dir, name)); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := os.WriteFile(filepath.Join(work, name), nil, 0o600); err != nil {
			return fmt.Errorf("write a backup: %w", err)
		}
		from, to = append(from, filepath.Join(dir, name)), append(to, filepath.Join(work, name))
	}
	if len(from) == 0 {
		return fmt.Errorf("%s has no memory yet; nothing to back up", dir)
	}
	if err := sqlite.Copy(ctx, from, to); err != nil {
		return err
	}
	for _, copied := range to {
		if err := sqlite.Check(ctx, copied); err != nil {
			return err
		}
	}
	for _, name := range alsoBackedUp {
		b, err := ReadFile(filepath.Join(dir, name), maxBackedUp)
		if err == nil {
			err = os.WriteFile(filepath.Join(work, name), b, 0o600)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("write a backup: %w", err)
		}
	}
	if err := packBackup(path, work); err != nil {
		return fmt.Errorf("write a backup: %w", err)
	}
	return nil
}

// packBackup writes an archive of a directory's files, whole or not at all.
func packBackup(path, work string) error {
	f, err := os.CreateTemp(filepath.Dir(path), ".backup-*") // 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }() // unless it is renamed
	z := zip.NewWriter(f)
	if err := errors.Join(z.AddFS(os.DirFS(work)), z.Close(), f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(f.Name(), path)
}

// CheckBackup unpacks a backup to a temporary directory and reads each page of its databases.
// try opens the databases of a directory, and returns the errors. The result is the time of the
// backup.
func CheckBackup(ctx context.Context, path string, try func(dir string) []error) (at time.Time, err error) {
	work, err := os.MkdirTemp(filepath.Dir(path), ".check-*")
	if err != nil {
		return at, fmt.Errorf("check a backup: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	return unpackBackup(ctx, path, work, try)
}

// RestoreBackup unpacks a backup to a data directory without a memory, after it has checked it. No
// process may use the directory.
func RestoreBackup(ctx context.Context, path, dir string, try func(dir string) []error) (at time.Time, err error) {
	for _, name := range append(slices.Clone(backedUp), alsoBackedUp...) {
		for _, end := range []string{"", "-wal", "-shm"} {
			if _, err := os.Lstat(filepath.Join(dir, name+end)); err == nil {
				return at, fmt.Errorf("%s has a memory or a part of one (%s); move the directory away with all of its files, then restore again", dir, name+end)
			}
		}
	}
	work, err := os.MkdirTemp(dir, ".restore-*")
	if err != nil {
		return at, fmt.Errorf("restore a backup: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	if at, err = unpackBackup(ctx, path, work, try); err != nil {
		return at, err
	}
	files, err := os.ReadDir(work)
	for _, f := range files {
		if err == nil {
			err = os.Rename(filepath.Join(work, f.Name()), filepath.Join(dir, f.Name()))
		}
	}
	if err != nil {
		return at, fmt.Errorf("restore a backup: %w", err)
	}
	return at, nil
}

// unpackBackup unpacks a backup to an empty directory and checks its databases.
func unpackBackup(ctx context.Context, path, dir string, try func(dir string) []error) (at time.Time, err error) {
	z, err := zip.OpenReader(path)
	if err != nil {
		return at, fmt.Errorf("read the backup %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, z.Close()) }()
	for _, f := range z.File {
		isDatabase := slices.Contains(backedUp, f.Name)
		if !isDatabase && (!slices.Contains(alsoBackedUp, f.Name) || f.UncompressedSize64 > maxBackedUp) {
			return at, fmt.Errorf("%s is no backup of a memory: it contains %q", path, f.Name)
		}
		at = f.Modified
		if err := unpackFile(f, filepath.Join(dir, f.Name)); err != nil {
			return at, fmt.Errorf("read %s in the backup: %w", f.Name, err)
		}
		if isDatabase {
			if err := sqlite.Check(ctx, filepath.Join(dir, f.Name)); err != nil {
				return at, err
			}
		}
	}
	if !slices.ContainsFunc(z.File, func(f *zip.File) bool { return f.Name == backedUp[0] }) {
		return at, fmt.Errorf("%s is no backup of a memory: %s is missing", path, backedUp[0])
	}
	return at, errors.Join(try(dir)...)
}

func unpackFile(f *zip.File, path string) error {
	r, err := f.Open()
	if err != nil {
		return err
	}
	defer r.Close()
	w, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) // #nosec G304 -- in our own directory
	if err != nil {
		return err
	}
	_, err = io.Copy(w, io.LimitReader(r, int64(min(f.UncompressedSize64, 1<<62)))) // #nosec G110 G115 -- bounded; the checksum is verified at its end
	return errors.Join(err, w.Close())
}

// The names of scheduled backups; their order is that of their times.
const (
	backupPrefix = "memory-"
	backupSuffix = ".zip"
	backupStamp  = "2006-01-02T150405Z"
)

// BackUpDue writes a scheduled backup to a directory of backups, if the newest one is older than every,
// and deletes all but the newest keep. It returns the path of a new backup, or "".
func BackUpDue(ctx context.Context, dir, to string, every time.Duration, keep int, now time.Time) (path string, err error) {
	if err := os.MkdirAll(to, 0o700); err != nil {
		return "", fmt.Errorf("write a backup: %w", err)
	}
	made, err := scheduled(to)
	if err != nil {
		return "", err
	}
	if n := len(made); n > 0 {
		at, _ := time.Parse(backupPrefix+backupStamp+backupSuffix, made[n-1])
		if now.Sub(at) < every {
			return "", nil
		}
	}
	name := now.UTC().Format(backupPrefix + backupStamp + backupSuffix)
	if err := WriteBackup(ctx, dir, filepath.Join(to, name)); err != nil {
		return "", err
	}
	made = append(made, name)
	for _, old := range made[:max(0, len(made)-keep)] {
		err = errors.Join(err, os.Remove(filepath.Join(to, old)))
	}
	return filepath.Join(to, name), err
}

// scheduled returns the names of the scheduled backups in a directory, the oldest first.
func scheduled(dir string) (names []string, err error) {
	files, err := os.ReadDir(dir) // by name
	if err != nil {
		return nil, fmt.Errorf("list the backups: %w", err)
	}
	for _, f := range files {
		if _, err := time.Parse(backupPrefix+backupStamp+backupSuffix, f.Name()); err == nil && strings.HasPrefix(f.Name(), backupPrefix) {
			names = append(names, f.Name())
		}
	}
	return names, nil
}
