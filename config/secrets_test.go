package config

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestSecretFiles checks that the files of secrets are listed, and that a new key or a new login
// to the same Postgres needs no restart.
func TestSecretFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "url")
	read := func(url, key string) *Config {
		t.Helper()
		if err := os.WriteFile(file, []byte(url), 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := Load(Sources{Env: []string{
			"HOME=" + dir, "GRAPHITI_PROXY_STATE_BACKEND=postgres", "GRAPHITI_PROXY_STATE_POSTGRES_URL_FILE=" + file, "GRAPHITI_PROXY_IDENTITY_OWNER=user:josh",
			"GRAPHITI_PROXY_MEMORY_API_KEY=" + key, "GRAPHITI_PROXY_EMBEDDING_API_KEY=" + key,
		}})
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	before := read("postgres://one:old@server/db", "k1")
	if got := before.SecretFiles(); !slices.Equal(got, []string{file}) {
		t.Errorf("got %q", got)
	}
	if got := NeedRestart(before, read("postgres://two:new@server/db", "k2")); len(got) > 0 {
		t.Errorf("a new login needs a restart: %q", got)
	}
	if got := NeedRestart(before, read("postgres://one:old@other/db", "k1")); !slices.Equal(got, []string{"state.postgres_url"}) {
		t.Errorf("another server: got %q", got)
	}
}
