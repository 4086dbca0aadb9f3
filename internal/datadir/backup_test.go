package datadir

import (
	"archive/zip"
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/cache/database"
	"github.com/graphiti-proxy/graphiti-proxy/cache/sqlite"
	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
)

var must = helptest.Must

// openTable opens a database with a table of numbers.
func openTable(t *testing.T, path string) *sqlite.DB {
	t.Helper()
	db, err := sqlite.Open(path, sqlite.Options{Schema: "CREATE TABLE numbers (n INTEGER PRIMARY KEY) STRICT", Version: 1, Sync: sqlite.SyncNormal, Holds: "numbers"})
	must(t, err)
	t.Cleanup(func() { _ = db.Close() }) // some are closed before
	return db
}

func insert(t *testing.T, db *sqlite.DB, n int) {
	t.Helper()
	err := db.Write(t.Context(), func(tx *database.Tx) error {
		_, err := tx.Exec("INSERT INTO numbers VALUES (?)", n)
		return err
	})
	if err != nil {
		t.Error(err)
	}
}

// TestRestoreBackup_Refuses checks which files and directories RestoreBackup refuses, and that it changes
// nothing then.
func TestRestoreBackup_Refuses(t *testing.T) {
	t.Parallel()
	from, out := t.TempDir(), t.TempDir()
	db := openTable(t, filepath.Join(from, "memory.db"))
	for n := range 2000 {
		insert(t, db, n+1)
	}
	good := filepath.Join(out, "good.zip")
	must(t, WriteBackup(t.Context(), from, good))
	b := helptest.File(t, good)
	archive := func(name, text string) []byte {
		var out bytes.Buffer
		z := zip.NewWriter(&out)
		w, err := z.Create(name)
		if err == nil {
			_, err = w.Write([]byte(text))
		}
		must(t, errors.Join(err, z.Close()))
		return out.Bytes()
	}
	for name, tc := range map[string]struct {
		file  []byte
		there string // a file of the directory
		fails error  // of the opened databases
		says  string
	}{
		"a memory":           {b, "memory.db", nil, "move the directory away"},
		"a log of another":   {b, "memory.db-wal", nil, "memory.db-wal"},
		"an owner":           {b, "owner", nil, "(owner)"},
		"a short file":       {b[:len(b)/2], "", nil, "read the backup"},
		"a changed file":     {slices.Concat(b[:len(b)/3], []byte("changed"), b[len(b)/3+7:]), "", nil, "memory.db"},
		"another archive":    {archive("photo.jpg", "x"), "", nil, `contains "photo.jpg"`},
		"a path":             {archive("../memory.db", "x"), "", nil, `contains "../memory.db"`},
		"no database":        {archive("memory.db", "x"), "", nil, "memory.db"},
		"no memory":          {archive("owner", "x"), "", nil, "memory.db is missing"},
		"of another version": {b, "", errors.New("schema 99"), "schema 99"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			path := filepath.Join(t.TempDir(), "backup.zip")
			must(t, os.WriteFile(path, tc.file, 0o600))
			if tc.there != "" {
				must(t, os.WriteFile(filepath.Join(dir, tc.there), nil, 0o600))
			}
			_, err := RestoreBackup(t.Context(), path, dir, func(string) []error { return []error{tc.fails} })
			if err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("got %v, want an error with %q", err, tc.says)
			}
			if files, _ := os.ReadDir(dir); len(files) > 1 || len(files) == 1 && files[0].Name() != tc.there {
				t.Errorf("left %v", files)
			}
		})
	}
}

// TestBackUpDue checks when a scheduled backup is written, and which ones are deleted.
func TestBackUpDue(t *testing.T) {
	t.Parallel()
	dir, to := t.TempDir(), filepath.Join(t.TempDir(), "backups")
	openTable(t, filepath.Join(dir, "memory.db"))
	at := time.Date(2026, 11, 29, 3, 0, 0, 0, time.UTC)
	for _, tc := range []struct {
		after time.Duration
		want  string
	}{{0, "memory-2026-11-29T030000Z.zip"}, {23 * time.Hour, ""}, {24 * time.Hour, "memory-2026-11-30T030000Z.zip"}, {49 * time.Hour, "memory-2026-12-01T040000Z.zip"}} {
		path, err := BackUpDue(t.Context(), dir, to, 24*time.Hour, 2, at.Add(tc.after))
		if err != nil || path != "" && filepath.Base(path) != tc.want || path == "" && tc.want != "" {
			t.Errorf("after %s: got %q, %v; want %q", tc.after, path, err, tc.want)
		}
	}
	if left, err := scheduled(to); err != nil || len(left) != 2 || left[0] != "memory-2026-11-30T030000Z.zip" {
		t.Errorf("kept %v, %v; want the newest two", left, err)
	}
	if err := WriteBackup(t.Context(), t.TempDir(), filepath.Join(to, "x.zip")); err == nil || !strings.Contains(err.Error(), "no memory yet") {
		t.Errorf("got %v for an empty directory", err)
	}
}

func TestWriteFileReplacesTheFileWhole(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "small")
	for _, text := range []string{"the first, which is longer\n", "second\n", ""} {
		must(t, WriteFile(path, []byte(text)))
		b, err := os.ReadFile(path)
		if err != nil || string(b) != text {
			t.Errorf("the file holds %q, %v; want %q", b, err, text)
		}
	}
	info, err := os.Stat(path)
	if err != nil || os.PathSeparator == '/' && info.Mode() != 0o600 {
		t.Errorf("the file has mode %v, %v; want 0600", info.Mode(), err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("the directory holds %v, %v; want one file", left, err)
	}
	if err := WriteFile(filepath.Join(dir, "missing", "small"), nil); err == nil {
		t.Error("written into no directory")
	}
}
