package config

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"net/url"
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

// checkUpstreams rejects addresses that lead to this proxy itself: requests would loop,
// and conversations for the memory would reach the provider.
func (c *Config) checkUpstreams(fail func(error)) {
	all := map[string]string{
		"upstream.openai": c.Upstream.OpenAI, "upstream.anthropic": c.Upstream.Anthropic, "upstream.gemini": c.Upstream.Gemini,
		"memory.endpoint": c.Memory.Endpoint, "distil.url": c.Distil.URL,
	}
	for name, base := range c.Named {
		all["upstreams."+name] = base
	}
	for _, key := range slices.Sorted(maps.Keys(all)) {
		if leadsTo(all[key], c.Listen) {
			fail(fmt.Errorf("%s: %q is this proxy itself, listening on %s; write the address of the other server", key, redact(all[key]), c.Listen))
		}
	}
}

// leadsTo reports whether a base address is that of a listener in its usual forms. The proxy
// recognizes other loops by their requests.
func leadsTo(base, listen string) bool {
	u, err := url.Parse(base)
	host, port, bad := net.SplitHostPort(listen)
	if err != nil || bad != nil || port == "0" || u.Port() != port {
		return false
	}
	this := map[string]string{"": "127.0.0.1", "localhost": "127.0.0.1", "0.0.0.0": "127.0.0.1", "::": "127.0.0.1"}
	return cmp.Or(this[u.Hostname()], u.Hostname()) == cmp.Or(this[host], host)
}
