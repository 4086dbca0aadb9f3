//go:build linux

package main

import (
	"io"
	"net"
	"net/http"
	"os/exec"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
)

// TestOutOfDescriptors: a process that may have 256 files open outlives more
// clients than that, on both sides, and answers meanwhile and afterwards.
func TestOutOfDescriptors(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("prlimit"); err != nil {
		t.Skip(err)
	}
	provider := startModel(t)
	p := &process{t: t, wrap: []string{"prlimit", "--nofile=256:256"}, args: []string{
		"serve", "--set", "listen=127.0.0.1:0", "--set", "admin.listen=127.0.0.1:0", "--set", "data_dir=" + t.TempDir(), "--set", "upstream.openai=" + provider.URL(),
	}}
	p.start()
	t.Cleanup(p.kill)
	url, admin := p.address()
	chat := func() {
		t.Helper()
		c := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: helptest.Patience}
		resp, err := c.Post(url+"/v1/chat/completions", "application/json", strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"hello"}]}`))
		must(t, err)
		defer resp.Body.Close()
		if b, _ := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: got %s, want Status 200", resp.Status, b)
		}
	}
	fill := func(base string) (all []net.Conn) {
		for range 300 {
			c, err := net.DialTimeout("tcp", strings.TrimPrefix(base, "http://"), helptest.Patience)
			must(t, err)
			all = append(all, c)
		}
		return all
	}
	leave := func(all []net.Conn) {
		for _, c := range all {
			c.Close()
		}
	}
	chat()
	idle := fill(url)
	chat() // the oldest of them have made room
	leave(idle)
	chat()
	idle = fill(admin)
	chat() // the admin side has its own, and no others
	leave(idle)
	resp, err := http.Get(admin + "/healthz")
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("the admin side: %v, %v", resp, err)
	}
	resp.Body.Close()
}
