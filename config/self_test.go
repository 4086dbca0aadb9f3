package config

import (
	"strings"
	"testing"
)

// TestUpstreamIsNotTheProxy checks that upstreams and the memory endpoint cannot be the
// proxy itself in its usual forms, and that other addresses are accepted.
func TestUpstreamIsNotTheProxy(t *testing.T) {
	for _, tc := range []struct {
		listen, base string
		want         bool
	}{
		{"127.0.0.1:8787", "http://127.0.0.1:8787", true},
		{"127.0.0.1:8787", "http://localhost:8787/v1", true},
		{"127.0.0.1:8787", "http://0.0.0.0:8787", true},
		{"localhost:8787", "https://127.0.0.1:8787", true},
		{"[::1]:8787", "http://[::1]:8787", true},
		{"0.0.0.0:8787", "http://127.0.0.1:8787", true},
		{"[::]:8787", "http://localhost:8787", true},
		{":8787", "http://localhost:8787", true},
		{"proxy.acme.test:8787", "http://proxy.acme.test:8787", true},

		{"127.0.0.1:8787", "http://127.0.0.1:8788", false},
		{"127.0.0.1:8787", "http://127.0.0.2:8787", false},
		{"127.0.0.1:8787", "https://api.openai.com:8787", false},
		{"127.0.0.1:0", "http://127.0.0.1:0", false},
		{"0.0.0.0:8787", "http://203.0.113.9:8787", false},
		{"127.0.0.1:443", "https://api.openai.com", false},
	} {
		if got := leadsTo(tc.base, tc.listen); got != tc.want {
			t.Errorf("%s, listening on %s: %v", tc.base, tc.listen, got)
		}
	}
	for _, key := range []string{"upstream.openai", "upstream.anthropic", "upstream.gemini", "memory.endpoint"} {
		_, err := Load(Sources{Flags: map[string]string{"memory.backend": "graphiti", "memory.consent": "true", "memory.endpoint": "http://127.0.0.1:8000", key: "http://localhost:8787"}})
		if err == nil || strings.Count(err.Error(), "\n") > 0 || !strings.Contains(err.Error(), key+": ") || !strings.Contains(err.Error(), "is this proxy itself") {
			t.Errorf("%s: got error %v, want one line that says that it is this proxy itself", key, err)
		}
	}
}

// TestPerAddress checks that the default limit of connections per address is half of all
// connections in multi mode, and that single mode has no limit, because one person uses the
// proxy.
func TestPerAddress(t *testing.T) {
	for _, tc := range []struct {
		mode, set string
		want      int
	}{{"single", "0", 0}, {"multi", "0", 50}, {"multi", "100", 100}, {"single", "7", 7}} {
		c, err := Load(Sources{Flags: map[string]string{"identity.mode": tc.mode, "limits.connections": "100", "limits.connections_per_address": tc.set}})
		if err != nil || c.PerAddress() != tc.want {
			t.Errorf("%v: got %d clients of one address, %v; want %d", tc, c.PerAddress(), err, tc.want)
		}
	}
}

// TestNamedUpstreamWithoutItsVersion checks that the base URL of a named upstream is used
// without a final /v1, like a provider's, and that a note reports it.
func TestNamedUpstreamWithoutItsVersion(t *testing.T) {
	c, err := load(t, "upstreams:\n  groq: https://api.groq.com/openai/v1/\n  ollama: http://127.0.0.1:11434\n", nil, nil)
	if err != nil || c.Named["groq"] != "https://api.groq.com/openai" || c.Named["ollama"] != "http://127.0.0.1:11434" ||
		len(c.Notes()) != 1 || !strings.HasPrefix(c.Notes()[0], "upstreams.groq: ") {
		t.Errorf("got upstreams %+v, notes %q, %v; want one note, about upstreams.groq", c.Named, c.Notes(), err)
	}
}
