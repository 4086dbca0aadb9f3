package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/graphiti-proxy/graphiti-proxy/config"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/graphititest"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/remote"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/rest"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/wire"
)

// runConfig runs a config command and returns its output.
func runConfig(t *testing.T, home string, args ...string) (string, error) {
	t.Helper()
	root := &cobra.Command{SilenceErrors: true, SilenceUsage: true}
	GlobalFlags(root)
	root.AddCommand(NewConfigCommand())
	var out bytes.Buffer
	root.SetOut(&out)
	root.SetErr(io.Discard)
	root.SetArgs(args)
	err := root.ExecuteContext(InEnvironment(t.Context(), Environment{Vars: []string{"HOME=" + home}, Dir: home}))
	return out.String(), err
}

// TestConfigCheckLooksIntoFiles checks that config check reads the files that settings
// name, reports all mistakes that would keep the proxy from starting, and answers in JSON
// with --json.
func TestConfigCheckLooksIntoFiles(t *testing.T) {
	dir := t.TempDir()
	none := filepath.Join(dir, "none")
	_, err := runConfig(t, dir, "config", "check", "--set", "identity.owner=user:", "--set", "tls.cert="+none, "--set", "tls.key="+none, "--set", "identity.users_file="+none)
	if err == nil {
		t.Fatal("it is valid")
	}
	for _, want := range []string{"identity.owner", "tls.cert", none} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%s is not among %v", want, err)
		}
	}
	out, err := runConfig(t, dir, "config", "check", "--json")
	var answer struct {
		Valid bool
	}
	if err != nil || json.Unmarshal([]byte(out), &answer) != nil || !answer.Valid {
		t.Errorf("got %s, %v, want no error, and a valid configuration", out, err)
	}
}

// TestConfigCheckNamesTooFewDescriptors checks that config check warns if the limit of
// connections far exceeds the limit of open files.
func TestConfigCheckNamesTooFewDescriptors(t *testing.T) {
	room := wire.RoomForClients()
	if room > 400_000 {
		t.Skip("this machine has descriptors for every limit that may be set")
	}
	for limit, noted := range map[int]bool{1_000_000: true, room: false} {
		out, err := runConfig(t, t.TempDir(), "config", "check", "--set", fmt.Sprintf("limits.connections=%d", limit))
		if err != nil || strings.Contains(out, fmt.Sprintf("file descriptors for %d clients; raise the limit of open files", room)) != noted {
			t.Errorf("limits.connections %d: %v\n%s", limit, err, out)
		}
	}
}

// writerFunc is an io.Writer that calls itself with each write.
type writerFunc func([]byte)

func (f writerFunc) Write(b []byte) (int, error) {
	f(b)
	return len(b), nil
}

func TestSmokeTestOfGraphiti(t *testing.T) {
	g, err := graphititest.Start(graphititest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Close()
	r, err := rest.New(remote.Options{Endpoint: g.URL()})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	try := func(wrote func(step []byte)) (string, error) {
		var out bytes.Buffer
		err := TryConnection(ctx, io.MultiWriter(&out, writerFunc(wrote)), r, &config.Config{}, true, false)
		return out.String(), err
	}
	out, err := try(func([]byte) {})
	if err != nil || strings.Count(out, "✓") != 6 {
		t.Errorf("got %v\n%s, want no error, 6 steps done", err, out)
	}
	g.KillWorker()
	out, err = try(func(step []byte) {
		if bytes.Contains(step, []byte("✓ write a message")) {
			cancel() // the episode will never arrive
		}
	})
	if err == nil || !strings.Contains(out, "✗ wait for its episode") || !strings.Contains(out, "✓ delete the group") || !strings.Contains(out, "1707") {
		t.Errorf("got %v\n%s, want an error, \"✗ wait for its episode\" in it, \"✓ delete the group\" in it, \"1707\" in it", err, out)
	}
}
