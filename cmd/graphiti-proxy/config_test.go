package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/proxy/wire"
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

// TestConfigCheckNamesTooFewDescriptors: a limit of connections that the limit
// of open files is far below is noted.
func TestConfigCheckNamesTooFewDescriptors(t *testing.T) {
	room := wire.RoomForClients()
	if room > 400_000 {
		t.Skip("this machine has descriptors for every limit that may be set")
	}
	for limit, noted := range map[int]bool{1_000_000: true, room: false} {
		out, err := command(t, t.TempDir(), "config", "check", "--set", fmt.Sprintf("limits.connections=%d", limit))
		if err != nil || strings.Contains(out, fmt.Sprintf("file descriptors for %d clients; raise the limit of open files", room)) != noted {
			t.Errorf("limits.connections %d: %v\n%s", limit, err, out)
		}
	}
}
