package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Upstreams returns the addresses of all upstreams, by dialect or by name in the setting
// upstreams.
func (c *Config) Upstreams() map[string]string {
	all := map[string]string{"openai": c.Upstream.OpenAI, "anthropic": c.Upstream.Anthropic, "gemini": c.Upstream.Gemini}
	maps.Copy(all, c.Named)
	return all
}

// withoutVersions removes a version such as /v1 from the end of base URLs, because the
// clients' paths already contain it.
func (c *Config) withoutVersions() {
	c.Upstream.OpenAI = c.withoutVersion("upstream.openai", c.Upstream.OpenAI)
	c.Upstream.Anthropic = c.withoutVersion("upstream.anthropic", c.Upstream.Anthropic)
	c.Upstream.Gemini = c.withoutVersion("upstream.gemini", c.Upstream.Gemini)
	for name, base := range c.Named {
		c.Named[name] = c.withoutVersion("upstreams."+name, base)
	}
	slices.Sort(c.notes)
}

func (c *Config) withoutVersion(key, base string) string {
	given := strings.TrimRight(base, "/")
	for _, version := range []string{"/v1", "/v1beta"} {
		if without, ok := strings.CutSuffix(given, version); ok && (version == "/v1" || key == "upstream.gemini") {
			c.notes = append(c.notes, fmt.Sprintf("%s: %s is used without %s, because request paths already start with it", key, given, version))
			return without
		}
	}
	return base
}
