package proxy

import (
	"crypto/tls"
	"fmt"
	"strings"
	"testing"

	"github.com/valyala/fasthttp"
	"pgregory.net/rapid"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/registry"
)

// set returns the upstreams of the APIs and one named groq.
func set(t testing.TB) Upstreams {
	t.Helper()
	bases := map[string]string{"groq": "https://groq.example"}
	for _, name := range registry.Upstreams {
		bases[name] = "https://" + name + ".example"
	}
	s, err := NewUpstreams(bases, &tls.Config{MinVersion: tls.VersionTLS12}, 1)
	must(t, err)
	return s
}

// respellings are functions that return another spelling of a path, changed at a position.
var respellings = []func(path string, at int) string{
	func(path string, at int) string { return beforeSlash(path, at, "/") },
	func(path string, at int) string { return beforeSlash(path, at, "/.") },
	func(path string, at int) string { return beforeSlash(path, at, "/%2E") },
	func(path string, at int) string { return beforeSlash(path, at, "/x/..") },
	func(path string, at int) string { return beforeSlash(path, at, "/x/%2e%2E") },
	func(path string, at int) string { return path[:at] + strings.Replace(path[at:], "/", `\`, 1) },
	func(path string, at int) string { return path[:at] + fmt.Sprintf("%%%02x", path[at]) + path[at+1:] },
	func(path string, at int) string { return path[:at] + fmt.Sprintf("%%%02X", path[at]) + path[at+1:] },
	func(path string, _ int) string { return strings.Replace(path, "u", "U", 1) },
	func(path string, _ int) string { return strings.TrimPrefix(path, "/") },
	func(path string, _ int) string { return "http://proxy.test/" + strings.TrimPrefix(path, "/") },
}

// beforeSlash returns path with s inserted before the first slash at or after at.
func beforeSlash(path string, at int, s string) string {
	i := strings.IndexByte(path[at:], '/')
	if i < 0 {
		return path
	}
	return path[:at+i] + s + path[at+i:]
}

// TestNoSpellingOfANameGoesElsewhere checks that any spelling of an upstream's name leads
// to that upstream or to none.
func TestNoSpellingOfANameGoesElsewhere(t *testing.T) {
	s := set(t)
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.SampledFrom([]string{"groq", "ollama", "locl", "openai"}).Draw(t, "name")
		target := "/u/" + name + rapid.SampledFrom([]string{"", "/", "/v1/chat/completions", "/v1/models/a%2Fb"}).Draw(t, "rest")
		for range rapid.IntRange(0, 4).Draw(t, "changes") {
			if at := rapid.IntRange(0, len(target)-1).Draw(t, "at"); !strings.Contains(target, "://") {
				target = rapid.SampledFrom(respellings).Draw(t, "respelling")(target, at)
			}
		}
		target += rapid.SampledFrom([]string{"", "?key=k", "?x=/u/else/", "#x"}).Draw(t, "query")
		h := new(fasthttp.RequestHeader)
		h.SetRequestURI(target)
		n, named := s.Named(h)
		if !named || n.Upstream != nil && (n.Upstream != s[name] || n.Name != name) {
			t.Fatalf("%s goes to %+v", target, n)
		}
	})
}
