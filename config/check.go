package config

import (
	"errors"
	"fmt"
	"net"
)

// check finds what single values do not show.
func (c *Config) check(fail func(error)) {
	if c.Identity.Mode == "single" && !Loopback(c.Listen) {
		fail(fmt.Errorf("listen: %q is open to other machines, and identity.mode is single: whoever reaches it would share one person's memory; listen on 127.0.0.1, or set identity.mode to multi, which keeps every credential apart", c.Listen))
	}
	if c.Admin.Listen != "off" {
		if !Loopback(c.Admin.Listen) && c.Admin.Token == "" {
			fail(fmt.Errorf("admin.listen: %q is open to other machines; set admin.token, or listen on 127.0.0.1", c.Admin.Listen))
		}
		if c.Admin.Listen == c.Listen && !anyPort(c.Listen) {
			fail(fmt.Errorf("admin.listen: %q is also listen; give each its own port", c.Admin.Listen))
		}
	}
	if c.RemoteMemory() && c.Memory.Endpoint == "" {
		fail(fmt.Errorf("memory.endpoint: memory.backend is %s, and there is no endpoint; write e.g. http://127.0.0.1:8000", c.Memory.Backend))
	}
	if c.Upstream.OpenAI == "" || c.Upstream.Anthropic == "" {
		fail(errors.New("upstream: an address is empty; leave the setting out to have its default"))
	}
	if (c.TLS.Cert == "") != (c.TLS.Key == "") {
		fail(errors.New("tls.cert, tls.key: one is set without the other; write both, or none"))
	}
	c.checkAvailable(fail)
}

// checkAvailable refuses what this version does not have.
func (c *Config) checkAvailable(fail func(error)) {
	if c.State.Backend == "redis" || c.State.RedisURL != "" {
		fail(errors.New("state.backend: redis is not available in this version; write sqlite and leave state.redis_url out"))
	}
}

// Loopback reports whether an address to listen on is reached from this
// machine only.
func Loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

func anyPort(address string) bool {
	_, port, err := net.SplitHostPort(address)
	return err == nil && port == "0"
}
