package identity

import (
	"bytes"
	"net/netip"
	"net/url"
	"strings"

	"github.com/valyala/fasthttp"
)

// FromWeb reports whether a page of the web may have sent a request to the
// proxy of this machine, where no credential tells people apart: its browser
// says that it is of another site, it names its origin, or it reached the proxy
// by a name that its own server resolves. What cannot be read counts as foreign.
func FromWeb(h *fasthttp.RequestHeader) bool {
	if host := h.Host(); len(host) > 0 && !ofThisMachine(host) {
		return true
	}
	for _, site := range h.PeekAll("Sec-Fetch-Site") {
		if bytes.EqualFold(bytes.TrimSpace(site), []byte("cross-site")) {
			return true
		}
	}
	switch origins := h.PeekAll("Origin"); len(origins) {
	case 0:
		return false
	case 1:
		return foreignOrigin(string(origins[0]))
	}
	return true
}

// foreignOrigin reports whether an Origin is not a program's of this machine.
// Extensions and desktop programs have schemes of their own.
func foreignOrigin(origin string) bool {
	u, err := url.Parse(origin)
	if err != nil || u.Scheme == "" || u.Host == "" || !strings.EqualFold(u.Scheme+"://"+u.Host, origin) {
		return true // null: a page in a sandbox
	}
	return (u.Scheme == "http" || u.Scheme == "https") && !ofThisMachine([]byte(u.Host))
}

// ofThisMachine reports whether a host, with or without a port, always means this
// machine, whichever name server answers.
func ofThisMachine(host []byte) bool {
	if i := bytes.LastIndexByte(host, ':'); i >= 0 && bytes.IndexByte(host[i:], ']') < 0 {
		host = host[:i]
	}
	switch string(host) {
	case "127.0.0.1", "localhost", "[::1]":
		return true
	}
	name := strings.ToLower(strings.Trim(string(host), "[]."))
	if ip, err := netip.ParseAddr(name); err == nil {
		return ip.IsLoopback()
	}
	// As containers call the machine that they run on.
	return name == "localhost" || strings.HasSuffix(name, ".localhost") || name == "host.docker.internal" || name == "host.containers.internal"
}

// Client is the client's name, for the description of a memory's source:
// the first word of its User-Agent, without a version.
func Client(agent []byte) string {
	name, _, _ := strings.Cut(string(agent[:min(len(agent), 64)]), " ")
	name, _, _ = strings.Cut(name, "/")
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return -1
		}
		return r
	}, name)
}
