package config

import (
	"strings"
	"testing"
)

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
