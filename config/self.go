package config

import (
	"cmp"
	"fmt"
	"maps"
	"net"
	"net/netip"
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
	type address struct{ key, base, instead string }
	all := []address{
		{"upstream.openai", c.Upstream.OpenAI, "the provider's address, e.g. https://api.openai.com"},
		{"upstream.anthropic", c.Upstream.Anthropic, "the provider's address, e.g. https://api.anthropic.com"},
		{"upstream.gemini", c.Upstream.Gemini, "the provider's address, e.g. https://generativelanguage.googleapis.com"},
		{"memory.endpoint", c.Memory.Endpoint, "Graphiti's address, e.g. http://127.0.0.1:8000"},
		{"distil.url", c.Distil.URL, "the model server's own address"},
	}
	for _, name := range slices.Sorted(maps.Keys(c.Named)) {
		all = append(all, address{"upstreams." + name, c.Named[name], "the server's own address"})
	}
	for _, to := range all {
		if to.base != "" && leadsTo(to.base, c.Listen) {
			fail(fmt.Errorf("%s: %q is this proxy itself, listening on %s; write %s", to.key, redact(to.base), c.Listen, to.instead))
		}
	}
}

// leadsTo reports whether requests to a base address arrive at listen, as far as the two addresses
// tell. The proxy recognizes other loops by their requests.
func leadsTo(base, listen string) bool {
	u, err := url.Parse(base)
	if err != nil {
		return false
	}
	port := cmp.Or(u.Port(), map[string]string{"http": "80", "https": "443"}[u.Scheme])
	host, own, err := net.SplitHostPort(listen)
	if err != nil || own != port || own == "0" {
		return false
	}
	any, err := netip.ParseAddr(host)
	everywhere := host == "" || err == nil && any.Unmap().IsUnspecified()
	return strings.EqualFold(u.Hostname(), host) || slices.ContainsFunc(addressesOf(u.Hostname()), func(ip netip.Addr) bool {
		return everywhere && ip.IsLoopback() || slices.Contains(addressesOf(host), ip)
	})
}

// addressesOf returns the addresses of a host that is an IP address or the local host, or nil.
func addressesOf(host string) []netip.Addr {
	ip, err := netip.ParseAddr(host)
	ip = ip.Unmap()
	name := strings.ToLower(strings.TrimSuffix(host, "."))
	switch {
	case err == nil && !ip.IsUnspecified(): // clients connect to that as loopback
		return []netip.Addr{ip}
	case err == nil, name == "localhost", strings.HasSuffix(name, ".localhost"):
		return []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1}), netip.IPv6Loopback()}
	}
	return nil
}
