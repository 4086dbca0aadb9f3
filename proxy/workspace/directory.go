package workspace

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// OfDirectory returns the workspace key for a client that works in a directory. It is for
// directories on a command line. file is the file of OpenProjects, and clones are the
// patterns of SetClones; the file is not changed.
func OfDirectory(dir, file string, clones []string) (key string, err error) {
	abs, err := existing(dir)
	if err != nil {
		return "", err
	}
	_, key = find(abs, file, clones)
	return key, nil
}

// existing returns the absolute path of a directory. The error is for a person.
func existing(dir string) (abs string, err error) {
	if abs, err = filepath.Abs(dir); err != nil {
		return "", fmt.Errorf("%q cannot be found: %w", dir, err)
	}
	switch info, err := os.Stat(abs); {
	case err != nil:
		return "", fmt.Errorf("there is no directory %q", dir)
	case !info.IsDir():
		return "", fmt.Errorf("%q is a file; name the project's directory", dir)
	}
	return abs, nil
}

// Around returns the repository that contains a directory, and the key that OfDirectory
// returns for it. ok is false if no repository contains it.
func Around(dir, file string, clones []string) (repo Repo, key string, ok bool) {
	abs, err := filepath.Abs(dir)
	if err != nil {
		return repo, "", false
	}
	repo, key = find(abs, file, clones)
	return repo, key, repo.Root != "" && exists(filepath.Join(repo.Root, ".git"))
}

func find(abs, file string, clones []string) (repo Repo, key string) {
	p := &Projects{file: file, readOnly: true, clones: clones}
	repo = p.settle(readCheckout(abs))
	return repo, repo.Key()
}

// IsDirectory reports whether the name of a workspace is the path of a directory.
func IsDirectory(name string) bool {
	if name == "." || name == ".." || filepath.IsAbs(name) {
		return true
	}
	first, _, ok := strings.Cut(filepath.ToSlash(name), "/")
	if !ok || strings.Contains(first, ":") {
		return false
	}
	if first == "." || first == ".." {
		return true
	}
	info, err := os.Stat(name)
	return err == nil && info.IsDir()
}
