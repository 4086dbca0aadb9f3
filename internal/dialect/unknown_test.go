package dialect_test

import (
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

func TestNames(t *testing.T) {
	for product, want := range map[string]string{"claude-cli": "Claude Code", "OpenAI": "OpenAI SDK", "": dialect.Other, "x": dialect.Other} {
		if got := dialect.Named(product); got != want {
			t.Errorf("%q is named %q", product, got)
		}
	}
	seen := make(map[string]bool)
	for _, name := range dialect.Names() {
		if seen[name] {
			t.Errorf("%q is listed twice", name)
		}
		seen[name] = true
	}
}
