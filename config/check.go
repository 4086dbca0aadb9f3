package config

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// check reports mistakes that involve several values.
func (c *Config) check(fail func(error)) {
	everybody := len(c.Allow) == 0
	for _, n := range c.Networks(fail) {
		everybody = everybody || n.Bits() == 0
	}
	if c.Identity.Mode == "single" && !Loopback(c.Listen) && everybody && len(c.Client.Keys) == 0 {
		fail(fmt.Errorf("listen: %q is open to other machines, and identity.mode is single: all its clients would share one person's memory; listen on 127.0.0.1, name the networks that are yours in listen.allow or your keys in client.keys, or set identity.mode to multi, which keeps every credential apart", c.Listen))
	}
	c.TrustedProxies(fail)
	if c.Admin.Listen != "off" {
		if !Loopback(c.Admin.Listen) && c.Admin.Token == "" {
			fail(fmt.Errorf("admin.listen: %q is open to other machines; set admin.token, or listen on 127.0.0.1", c.Admin.Listen))
		}
		if c.Admin.Listen == c.Listen && !anyPort(c.Listen) {
			fail(fmt.Errorf("admin.listen: %q is also listen; give each its own port", c.Admin.Listen))
		}
	}
	if c.RemoteMemory() && c.Memory.Endpoint == "" {
		fail(fmt.Errorf("memory.endpoint: memory.backend %s needs an endpoint; write e.g. http://127.0.0.1:8000", c.Memory.Backend))
	}
	if slices.Contains(slices.Collect(maps.Values(c.Upstreams())), "") {
		fail(errors.New("upstream: an address is empty; omit the setting to use its default"))
	}
	for _, base := range c.Upstreams() {
		if c.leadsBack(base) {
			fail(fmt.Errorf("listen: %q is the proxy itself, and so is the upstream %s; write the provider's address there", c.Listen, base))
		}
	}
	c.checkDistil(fail)
	c.checkState(fail)
	if (c.TLS.Cert == "") != (c.TLS.Key == "") {
		fail(errors.New("tls.cert, tls.key: one is set without the other; write both, or none"))
	}
	if c.Ingest.Ownership && (c.Identity.Mode == "single" && c.Identity.Owner == "" || c.Identity.Mode == "multi" && c.Identity.UsersFile == "") {
		fail(errors.New("ingest.ownership: the configuration names no owner of a memory; set identity.owner, or identity.users_file in identity.mode multi"))
	}
	checkKeys("identity.trusted_keys", c.Identity.TrustedKeys, fail)
	checkKeys("client.keys", c.Client.Keys, fail)
	for _, dir := range c.Workspace.Clones {
		if !filepath.IsAbs(dir) && !strings.HasPrefix(dir, "*") {
			fail(fmt.Errorf("workspace.clones: %q is not an absolute path; write e.g. /home/me/src/*", dir))
		}
	}
	c.checkGroups(fail)
	if c.Identity.WorkspaceIDs == "raw" && c.Identity.Mode == "multi" {
		fail(errors.New("identity.workspace_ids: with raw, a client names the group, so in identity.mode multi it could name another person's; write canonical"))
	}
	if c.Recall.Query == "get-memory" && c.Memory.Backend != "graphiti" {
		fail(fmt.Errorf("recall.query: get-memory is a call of Graphiti's REST service, and memory.backend is %s; write search", c.Memory.Backend))
	}
}

// checkDistil rejects incomplete settings of the model that distils facts.
func (c *Config) checkDistil(fail func(error)) {
	switch d := &c.Distil; {
	case d.Upstream && d.URL+d.APIKey != "":
		fail(errors.New("distil.upstream: distil.url or distil.api_key is set too; leave one of them out"))
	case d.Upstream && d.Model == "":
		fail(errors.New("distil.model: distil.upstream is set, and there is no model; write the name of one that your provider has"))
	case !d.Upstream && d.URL == "" && d.Model+d.APIKey != "":
		fail(errors.New("distil.url: distil.model or distil.api_key is set, and there is no address; write e.g. http://127.0.0.1:11434/v1"))
	case d.URL != "" && d.Model == "":
		fail(errors.New("distil.model: distil.url is set, and there is no model; write the name of one that the server has"))
	}
}

var (
	placeholder = regexp.MustCompile(`\{[^{}]*\}`)
	groupName   = regexp.MustCompile(`^[A-Za-z0-9_-]{1,256}$`)
)

// checkGroups rejects invalid names in recall.also_groups, and names in which a client
// could fill in another person's group.
func (c *Config) checkGroups(fail func(error)) {
	allowed := []string{"{directory}", "{login}", "{user}"}
	why := "is unknown; write {directory}, {login} or {user}"
	if c.Identity.Mode == "multi" {
		allowed = allowed[2:]
		why = "is unproven in identity.mode multi; write {user}, the authenticated person"
	}
	for _, name := range c.Recall.AlsoGroups {
		plain := placeholder.ReplaceAllStringFunc(name, func(p string) string {
			if !slices.Contains(allowed, p) {
				fail(fmt.Errorf("recall.also_groups: %q: %s %s", name, p, why))
			}
			return "x"
		})
		if !groupName.MatchString(plain) {
			fail(fmt.Errorf("recall.also_groups: %q is not a valid group name; use letters, digits, - and _, as in main or opencode-{directory}__main", name))
		}
	}
	if len(c.Recall.AlsoGroups) > 0 && c.Memory.Backend == "embedded" {
		fail(errors.New("recall.also_groups: these are groups of a Graphiti, and memory.backend is embedded; set memory.endpoint, or remove the groups"))
	}
}

// checkKeys rejects values that are not a hash of a credential.
func checkKeys(setting string, keys []string, fail func(error)) {
	for i, k := range keys {
		if digits, hashed := strings.CutPrefix(k, "sha256:"); hashed {
			if b, err := hex.DecodeString(digits); err != nil || len(b) != sha256.Size {
				fail(fmt.Errorf("%s: item %d needs 64 hex digits after its sha256 prefix", setting, i+1))
			}
		}
	}
}

// Networks returns the networks of listen.allow, and calls fail for each invalid value.
func (c *Config) Networks(fail func(error)) []netip.Prefix {
	return networks("listen.allow", c.Allow, fail)
}

// TrustedProxies returns the networks of admin.trusted_proxies, and calls fail for each
// invalid value.
func (c *Config) TrustedProxies(fail func(error)) []netip.Prefix {
	return networks("admin.trusted_proxies", c.Admin.TrustedProxies, fail)
}

func networks(setting string, values []string, fail func(error)) (all []netip.Prefix) {
	for _, s := range values {
		p, err := netip.ParsePrefix(s)
		if a, bad := netip.ParseAddr(s); bad == nil {
			p, err = netip.PrefixFrom(a, a.BitLen()), nil
		}
		if err != nil {
			fail(fmt.Errorf("%s: %q is not a network; write e.g. 172.16.0.0/12, or an address", setting, s))
			continue
		}
		all = append(all, p.Masked())
	}
	return all
}

// checkState rejects settings that do not work with replicas.
func (c *Config) checkState(fail func(error)) {
	url := c.State.PostgresURL
	if c.State.Backend != "postgres" {
		if url != "" {
			fail(errors.New("state.postgres_url: is set, and state.backend is sqlite; set state.backend to postgres, or remove the address"))
		}
		return
	}
	if url == "" {
		fail(errors.New("state.postgres_url: state.backend is postgres, and there is no address; write e.g. postgres://user:password@127.0.0.1:5432/graphiti_proxy"))
	} else if !strings.HasPrefix(url, "postgres://") && !strings.HasPrefix(url, "postgresql://") {
		fail(errors.New("state.postgres_url: not an address of Postgres; write e.g. postgres://user:password@127.0.0.1:5432/graphiti_proxy"))
	}
	if c.Backup.Every > 0 {
		fail(errors.New("backup.every: the memory is in Postgres; remove the setting, and back the database up with its own tools, such as pg_dump"))
	}
	if c.Identity.Mode == "single" && c.Identity.Owner == "" {
		fail(errors.New("identity.owner: with state.backend postgres, each replica would create its own owner; write e.g. github_login:octocat, or set identity.mode to multi"))
	}
	if c.Distil.Upstream {
		fail(errors.New("distil.upstream: one of the replicas distils, and another one may have the person's API key; set distil.url, or state.backend to sqlite"))
	}
}

// Loopback reports whether a listen address is reachable from this machine only.
func Loopback(address string) bool {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// leadsBack reports whether a base URL is the proxy's own address.
func (c *Config) leadsBack(base string) bool {
	u, err := url.Parse(base)
	if err != nil || anyPort(c.Listen) {
		return false
	}
	host, port, _ := net.SplitHostPort(c.Listen)
	local := Loopback(c.Listen) || host == "" || net.ParseIP(host).IsUnspecified()
	return u.Host == c.Listen || u.Port() == port && local && Loopback(u.Host)
}

func anyPort(address string) bool {
	_, port, err := net.SplitHostPort(address)
	return err == nil && port == "0"
}
