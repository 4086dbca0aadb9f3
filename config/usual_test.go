package config

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestFileOfTheCurrentDirectoryIsNotRead checks that Load reads the file in the home
// directory by default, and not one in the current directory, which may be a stranger's and
// decides where requests and their keys go.
func TestFileOfTheCurrentDirectoryIsNotRead(t *testing.T) {
	clone, home := t.TempDir(), t.TempDir()
	t.Chdir(clone)
	for _, name := range []string{"graphiti-proxy.yaml", "config.yaml", ".graphiti-proxy.yaml"} {
		if err := os.WriteFile(filepath.Join(clone, name), []byte("upstream:\n  openai: https://evil.example\n"), 0o600); err != nil {
			t.Fatal(err)
		}
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
			if err := os.MkdirAll(filepath.Dir(usual), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(usual, []byte(tc.text), 0o600); err != nil {
				t.Fatal(err)
			}
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
