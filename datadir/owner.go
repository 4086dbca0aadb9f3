package datadir

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// KnownOwner is that key where it has been made, else empty.
func KnownOwner(dir string) string {
	b, _ := os.ReadFile(filepath.Join(dir, "owner")) // #nosec G304 -- our own file; not readable: not known
	return strings.TrimSpace(string(b))
}

// Owner is the key of the person of a machine, made once and kept.
func Owner(dir string) (owner string, err error) {
	defer func() {
		if err != nil {
			err = fault(dir, err)
		}
	}()
	path := filepath.Join(dir, "owner")
	b, err := os.ReadFile(path) // #nosec G304 -- our own file
	if owner := strings.TrimSpace(string(b)); err == nil && owner != "" {
		return owner, nil
	}
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return "", err
	}
	owner = "user:" + strings.ToLower(rand.Text())
	if err := os.WriteFile(path, []byte(owner+"\n"), 0o600); err != nil {
		return "", err
	}
	return owner, nil
}
