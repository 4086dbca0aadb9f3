package main

import (
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/config"
)

// TestDockerLine checks that the settings of the one line in docs/docker.md start a proxy
// in single mode, which answers requests from other addresses of this machine only if the
// line allows their networks.
func TestDockerLine(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../../docs/docker.md")
	must(t, err)
	dir := t.TempDir()
	env := []string{"HOME=" + dir}
	for _, set := range regexp.MustCompile(`-e (GRAPHITI_PROXY_\S+)`).FindAllStringSubmatch(string(b), -1) {
		env = append(env, set[1])
	}
	flags := map[string]string{"admin.listen": "127.0.0.1:0", "data_dir": dir}
	cfg, err := config.Load(config.Sources{Env: env, Flags: flags})
	if err != nil || cfg.Listen != "0.0.0.0:8787" || cfg.Identity.Mode != "single" {
		t.Fatalf("got %+v, %v, want no error, Listen \"0.0.0.0:8787\", Mode \"single\"", cfg, err)
	}
	w := start(t, t.TempDir(), map[string]string{"listen": "0.0.0.0:0", "listen.allow": strings.Join(cfg.Allow, ",")})
	_, port, err := net.SplitHostPort(w.app.proxy.Addr().String())
	must(t, err)
	all, err := net.InterfaceAddrs()
	must(t, err)
	networks := cfg.Networks(func(err error) { t.Error(err) })
	for _, a := range all {
		n, ok := a.(*net.IPNet)
		if !ok || n.IP.To4() == nil {
			continue
		}
		ip := n.IP.String()
		want := http.StatusOK
		if !n.IP.IsLoopback() && !slices.ContainsFunc(networks, func(p netip.Prefix) bool { return p.Contains(netip.MustParseAddr(ip)) }) {
			want = http.StatusForbidden
		}
		resp, err := w.client.Get("http://" + net.JoinHostPort(ip, port) + "/v1/models")
		if err != nil {
			t.Errorf("%s: %v", ip, err)
			continue
		}
		said, _ := io.ReadAll(resp.Body)
		resp.Body.Close()
		if forbidden := resp.StatusCode == http.StatusForbidden; forbidden != (want == http.StatusForbidden) {
			t.Errorf("%s: got %s %s, want %d", ip, resp.Status, said, want)
		}
	}
}
