package main

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"
)

// TestConfigCheckLooksIntoFiles, and finds all mistakes that would keep the
// proxy from starting; its answer is there for programs, too.
func TestConfigCheckLooksIntoFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	none := filepath.Join(dir, "none")
	_, err := command(t, dir, "config", "check", "--set", "identity.owner=user:", "--set", "tls.cert="+none, "--set", "tls.key="+none, "--set", "identity.users_file="+none)
	if err == nil {
		t.Fatal("it is valid")
	}
	for _, want := range []string{"identity.owner", "tls.cert", none} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not among %v", want, err)
		}
	}
	out, err := command(t, dir, "config", "check", "--json")
	var answer struct {
		Valid          bool
		Listen, Memory string
	}
	if err != nil || json.Unmarshal([]byte(out), &answer) != nil || !answer.Valid || answer.Listen == "" || answer.Memory == "" {
		t.Errorf("%s, %v", out, err)
	}
}
