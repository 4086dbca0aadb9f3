package config

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// TestFileOfTheCurrentDirectoryIsNotRead checks that Load reads the file in the home
// directory by default, and not one in the current directory, which may be a stranger's and
// decides where requests and their keys go.
func TestFileOfTheCurrentDirectoryIsNotRead(t *testing.T) {
	clone, home := t.TempDir(), t.TempDir()
	t.Chdir(clone)
	for _, name := range []string{"graphiti-proxy.yaml", "config.yaml", ".graphiti-proxy.yaml"} {
		must(t, os.WriteFile(filepath.Join(clone, name), []byte("upstream:\n  openai: https://evil.example\n"), 0o600))
	}
	usual := filepath.Join(home, ".config", "graphiti-proxy", "config.yaml")
	for _, tc := range []struct {
		name, text   string
		sources      Sources
		file, openai string
	}{
		{"no file", "", Sources{}, "", "https://api.openai.com"},
		{"the usual one", "upstream:\n  openai: https://usual.example\nidentity:\n  users_file: users.yaml\nmemory:\n  client_certificate: cert.pem\n  headers: [X-Access=access]\n", Sources{}, usual, "https://usual.example"},
		{"one that is named", "", Sources{File: "graphiti-proxy.yaml"}, "graphiti-proxy.yaml", "https://evil.example"},
	} {
		if tc.text != "" {
			must(t, os.MkdirAll(filepath.Dir(usual), 0o700))
			must(t, os.WriteFile(usual, []byte(tc.text), 0o600))
		}
		tc.sources.Env = []string{"HOME=" + home}
		c, err := Load(tc.sources)
		if err != nil || c.File() != tc.file || c.Upstream.OpenAI != tc.openai {
			t.Fatalf("%s: got error %v, configuration %+v; want file %q and upstream %q", tc.name, err, c, tc.file, tc.openai)
		}
		if users := c.Identity.UsersFile; users != "" && users != filepath.Join(filepath.Dir(usual), "users.yaml") {
			t.Errorf("%s: people are read from %s", tc.name, users)
		}
		dir := filepath.Dir(usual)
		if m := c.Memory; tc.file == usual && (m.ClientCertificate != filepath.Join(dir, "cert.pem") || !slices.Equal(m.Headers, []string{"X-Access=" + filepath.Join(dir, "access")})) {
			t.Errorf("%s: files of the memory are %s and %v", tc.name, m.ClientCertificate, m.Headers)
		}
	}
}

// TestTimeoutOfRecall checks that the default of recall.timeout is longer for a service
// than for the embedded memory, and that an explicit value overrides it.
func TestTimeoutOfRecall(t *testing.T) {
	for _, tc := range []struct {
		env  []string
		want time.Duration
	}{
		{nil, 400 * time.Millisecond},
		{[]string{"GRAPHITI_URL=http://127.0.0.1:8000"}, 800 * time.Millisecond},
		{[]string{"GRAPHITI_PROXY_MEMORY_BACKEND=graphiti-mcp", "GRAPHITI_PROXY_MEMORY_ENDPOINT=http://127.0.0.1:8000"}, 800 * time.Millisecond},
		{[]string{"GRAPHITI_URL=http://127.0.0.1:8000", "GRAPHITI_PROXY_RECALL_TIMEOUT=400ms"}, 400 * time.Millisecond},
	} {
		c, err := Load(Sources{Env: append(tc.env, "HOME="+t.TempDir())})
		if err != nil || c.Recall.Timeout != tc.want {
			t.Errorf("%v: got recall.timeout %v, %v; want %v", tc.env, c.Recall.Timeout, err, tc.want)
		}
	}
}

// TestSecretFiles checks that the files of secrets are listed, and that a new key or a new login
// to the same Postgres needs no restart.
func TestSecretFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := filepath.Join(dir, "url")
	read := func(url, key string) *Config {
		t.Helper()
		must(t, os.WriteFile(file, []byte(url), 0o600))
		c, err := Load(Sources{Env: []string{
			"HOME=" + dir, "GRAPHITI_PROXY_STATE_BACKEND=postgres", "GRAPHITI_PROXY_STATE_POSTGRES_URL_FILE=" + file, "GRAPHITI_PROXY_IDENTITY_OWNER=user:josh",
			"GRAPHITI_PROXY_MEMORY_API_KEY=" + key, "GRAPHITI_PROXY_EMBEDDING_API_KEY=" + key,
		}})
		must(t, err)
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
