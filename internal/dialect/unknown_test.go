package dialect_test

import (
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

func TestUnknownTags(t *testing.T) {
	for text, want := range map[string]bool{
		"<new_harness_tag>\nx":                 true,
		"<a>":                                  true,
		"":                                     false,
		"<":                                    false,
		"<>":                                   false,
		"<a":                                   false,
		"<a href=\"x\">":                       false,
		"<Component> fails":                    false,
		"</a>":                                 false,
		"What is <a>?":                         false,
		"<" + strings.Repeat("a", 1<<20) + ">": false,
	} {
		if got := dialect.UnknownTag(text); got != want {
			t.Errorf("%.40q: begins with an unknown tag: %v, want %v", text, got, want)
		}
	}
}

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
