package identity

import (
	"bytes"
	"encoding/hex"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"unicode"

	"github.com/valyala/fasthttp"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect"
)

// FromWeb reports whether a web page may have sent a request to the proxy of this machine.
// In single mode no credential separates a page from the person. The evidence is a
// Sec-Fetch-Site of another site or port, a foreign or malformed Origin, or a Host that an
// outside name server may resolve (DNS rebinding).
func FromWeb(h *fasthttp.RequestHeader) bool {
	if host := h.Host(); len(host) > 0 && !ofThisMachine(host) {
		return true
	}
	for _, site := range h.PeekAll("Sec-Fetch-Site") {
		if s := string(bytes.ToLower(bytes.TrimSpace(site))); s != "same-origin" && s != "none" {
			return true
		}
	}
	switch origins := h.PeekAll("Origin"); len(origins) {
	case 0:
		return false
	case 1:
		return foreignOrigin(string(origins[0]), string(h.Host()))
	}
	return true
}

// foreignOrigin reports whether an Origin is malformed or belongs to a page of another
// address. A page of another port of this machine may be a stranger's, such as the
// development server of a cloned repository. Browser extensions and desktop programs have
// schemes of their own and count as local.
func foreignOrigin(origin, host string) bool {
	u, err := url.Parse(origin)
	switch {
	case origin == "file://":
		return false // a desktop program; a browser sends "null" for a file
	case err != nil || u.Scheme == "" || u.Host == "" || u.Scheme == "file" || !strings.EqualFold(u.Scheme+"://"+u.Host, origin):
		return true // a sandboxed page sends "null"
	}
	// Tauri serves the pages of desktop programs from this host on Windows.
	return (u.Scheme == "http" || u.Scheme == "https") && !strings.EqualFold(u.Host, host) && u.Host != "tauri.localhost"
}

// ofThisMachine reports whether a host, with or without a port, is this machine regardless
// of DNS.
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
	// Containers reach their host by the last two names.
	return name == "localhost" || strings.HasSuffix(name, ".localhost") || name == "host.docker.internal" || name == "host.containers.internal"
}

// Product returns the first word of a User-Agent, without the version.
func Product(agent []byte) string {
	name, _, _ := strings.Cut(string(agent[:min(len(agent), 64)]), " ")
	name, _, _ = strings.Cut(name, "/")
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return -1
		}
		return r
	}, name)
}

// FromServer reports whether a chat server, Open WebUI, sends the request.
func (cl *Claims) FromServer() bool { return cl.values[headerIDs[openWebUIChat]] != nil }

// InChat reports whether people talk with the client. Call it after ReadBody.
func (cl *Claims) InChat() bool { return cl.program.Chats() || cl.FromServer() }

// IsLibrary reports whether an unknown program sends the request with a known library.
func (cl *Claims) IsLibrary() bool { return cl.program.Library && !cl.InChat() }

// Client returns the name of the client program, or the product of an unknown one. Call it after ReadBody.
func (cl *Claims) Client() string {
	if name := cl.program.Name; name != dialect.Other {
		return name
	}
	return Product(cl.h.UserAgent())
}

// Application returns a hash of the client program and its credentials. The system prompt and the whole User-Agent without its versions distinguish the programs
// that people do not talk with: many share a library. Call it after ReadBody.
func (cl *Claims) Application() string {
	parts := []string{cl.Client()}
	if !cl.InChat() {
		product := bytes.Map(func(r rune) rune {
			if unicode.IsDigit(r) {
				return -1
			}
			return r
		}, cl.h.UserAgent())
		parts = append(parts, string(product), strconv.FormatUint(cl.conv.PromptHash(), 16))
	}
	var buf [256]byte
	sum := graphiti.Digest("application", append(parts, string(cl.AppendCredentials(buf[:0])))...)
	return hex.EncodeToString(sum[:8])
}
