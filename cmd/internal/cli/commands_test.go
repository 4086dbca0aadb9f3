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
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/spf13/cobra"

	"github.com/graphiti-proxy/graphiti-proxy/capture/ledger"
	"github.com/graphiti-proxy/graphiti-proxy/config"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/graphititest"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/remote"
	"github.com/graphiti-proxy/graphiti-proxy/graphiti/rest"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
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
	must(t, err)
	defer g.Close()
	r, err := rest.New(remote.Options{Endpoint: g.URL()})
	must(t, err)
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

type word string

type Inner struct {
	User  string `json:"user,omitempty" help:"a person"`
	Group string `json:"group,omitempty" help:"a group"`
}

type outer struct {
	Inner
	State word     `json:"state" help:"a state"`
	Last  int      `json:"last" help:"how many"`
	All   bool     `json:"all" flag:"explain" help:"all of them"`
	IDs   []string `json:"ids" help:"some"`
	Text  string   `json:"text"`
}

// TestInputFlags: flags fill the fields with a help tag, and their defaults are the fields'
// values.
func TestInputFlags(t *testing.T) {
	in := outer{Last: 20}
	c := &cobra.Command{Use: "x", RunE: func(*cobra.Command, []string) error { return nil }}
	InputFlags(c, &in, "group")
	for _, name := range []string{"text", "group", "all"} {
		if c.Flags().Lookup(name) != nil {
			t.Errorf("got a flag --%s, want none", name)
		}
	}
	if got := c.Flags().Lookup("last").DefValue; got != "20" {
		t.Errorf("default of --last: got %s, want 20", got)
	}
	c.SetArgs([]string{"--user", "josh", "--state", "dead", "--last", "3", "--explain", "--ids", "a,b"})
	must(t, c.Execute())
	want := outer{Inner: Inner{User: "josh"}, State: "dead", Last: 3, All: true, IDs: []string{"a", "b"}}
	if diff := cmp.Diff(want, in, cmp.AllowUnexported(outer{})); diff != "" {
		t.Errorf("input (-want +got):\n%s", diff)
	}
	if err := c.Flags().Set("user", " "); err == nil {
		t.Error("an empty --user was accepted, want an error")
	}
}

// TestPrinted checks that turns, messages and groups are printed as tables without control
// characters.
func TestPrinted(t *testing.T) {
	var b strings.Builder
	PrintTurns(&b, service.Listed{})
	PrintTurns(&b, service.Listed{All: 3, Turns: []ledger.Item{{
		Number: 7, Condition: ledger.Dead, Since: time.Now().Add(-90 * time.Second), Attempts: 3, Group: "user_josh", Reason: "400\x1b[2J", User: "Hello,\nyou.", Assistant: "Hello.",
	}}})
	PrintGroups(&b, []ledger.Owned{
		{Group: "user_josh", Scope: "user"}, {Group: "workspace_w", Scope: "workspace", Key: "path:/w", Shared: true}, {Group: "user_ann", Scope: "user", Session: "session:s"},
	})
	got := strings.Join(strings.Fields(b.String()), " ")
	for _, want := range []string{
		"no undelivered turns NUMBER STATE AGE ATTEMPTS GROUP REASON 7 dead 1m30s 3 user_josh 400",
		`user: "Hello,\nyou." assistant: "Hello." … and 2 more; list them with --limit`,
		"user_josh user workspace_w workspace path:/w not deleted: other people wrote to it too user_ann user only that conversation's messages",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("no %q in\n%s", want, b.String())
		}
	}
	if strings.Contains(got, "\x1b") {
		t.Errorf("got %q, want no \"\\x1b\" in it", got)
	}
}
