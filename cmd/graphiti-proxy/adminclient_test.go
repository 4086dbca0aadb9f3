package main

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"sync/atomic"
	"testing"
)

// TestCommandsUseNoProxy checks that a command calls the running proxy directly and not
// over HTTP_PROXY, which would see its token, even if it listens on all addresses, as in a
// container.
func TestCommandsUseNoProxy(t *testing.T) {
	t.Parallel()
	w := start(t, t.TempDir(), map[string]string{"admin.token": "secret"})
	var asked atomic.Int32
	between := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked.Add(1) }))
	defer between.Close()
	_, port, err := net.SplitHostPort(w.app.admin.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	for _, host := range []string{"0.0.0.0", "", "127.0.0.1"} {
		for _, args := range [][]string{{"status"}, {"status", "--health"}} {
			c := exec.Command(os.Args[0], append(args, "--set", "admin.listen="+net.JoinHostPort(host, port), "--set", "admin.token=secret", "--set", "data_dir="+w.app.cfg.DataDir)...) // #nosec G204 -- ourselves
			c.Env = append(os.Environ(), "TEST_BINARY_RUNS=the program", "HTTP_PROXY="+between.URL, "http_proxy="+between.URL, "NO_PROXY=", "no_proxy=")
			if out, err := c.CombinedOutput(); err != nil {
				t.Errorf("%q %v: %v\n%s", host, args, err, out)
			}
		}
	}
	if n := asked.Load(); n != 0 {
		t.Errorf("a proxy was asked %d times", n)
	}
}
