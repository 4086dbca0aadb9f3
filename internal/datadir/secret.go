package datadir

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"path/filepath"
	"strings"
)

const secretSize = 32 // bytes

func secretFile(dir string) string { return filepath.Join(dir, "secret") }

// Secret returns the directory's secret, which signs exports and receipts, or nil if it is
// missing or unreadable.
func Secret(dir string) []byte {
	b, err := readOwn(secretFile(dir))
	if err != nil {
		return nil
	}
	secret, err := hex.DecodeString(strings.TrimSpace(string(b)))
	if err != nil || len(secret) != secretSize {
		return nil
	}
	return secret
}

// MakeSecret returns the secret, creating it if necessary. It replaces an unreadable one:
// earlier receipts of deletions then have another key, and rules of earlier exports wait.
func MakeSecret(dir string) ([]byte, error) {
	if secret := Secret(dir); secret != nil {
		return secret, nil
	}
	secret := make([]byte, secretSize)
	_, _ = rand.Read(secret) // which never fails
	if err := WriteFile(secretFile(dir), []byte(hex.EncodeToString(secret)+"\n")); err != nil {
		return nil, errors.Join(errors.New("make the secret of data_dir"), err)
	}
	return secret, nil
}
