package proxy

import (
	"bytes"
	"net/netip"
	"net/url"
	"strings"

	"github.com/valyala/fasthttp"
)

// fromWeb reports whether a page of the web may have sent a request to the
// proxy of this machine, where no credential tells people apart: it names its
// origin, or it reached the proxy by a name that its own server resolves.
func fromWeb(h *fasthttp.RequestHeader) bool {
	if host := h.Host(); len(host) > 0 && !ofThisMachine(host) {
		return true
	}
	origin := h.Peek("Origin")
	if len(origin) == 0 {
		return false
	}
	u, err := url.Parse(string(origin))
	if err != nil || string(origin) == "null" { // a page in a sandbox
		return true
	}
	// Extensions and desktop programs have schemes of their own.
	return (u.Scheme == "http" || u.Scheme == "https") && !ofThisMachine([]byte(u.Host))
}

// ofThisMachine reports whether a host, with or without a port, is this
// machine whoever is asked.
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
