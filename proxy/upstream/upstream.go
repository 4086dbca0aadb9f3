// Package upstream knows the servers that requests are forwarded to, by their
// names: one for each API, and those that the configuration adds.
//
// It owns which of them a request asks for. It must not know what is sent there.
// Of our packages it imports dialect/registry and proxy/wire.
package upstream

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"maps"
	"net/url"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/graphiti-proxy/graphiti-proxy/dialect/registry"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/wire"
)

// Set are upstreams by name. It is not changed once it is in use.
type Set map[string]*wire.Upstream

// New makes the upstreams. There must be a base address for each name of
// registry.Upstreams.
func New(bases map[string]string, roots *tls.Config, connect time.Duration) (Set, error) {
	s := make(Set)
	for _, name := range slices.Concat(registry.Upstreams, slices.Sorted(maps.Keys(bases))) {
		if s[name] != nil {
			continue
		}
		u, err := wire.NewUpstream(name, bases[name], roots, connect)
		if err != nil {
			return nil, fmt.Errorf("the upstream %s: %w", name, err)
		}
		if !ofAPI(name) {
			u.Setting = "upstreams." + name
		}
		s[name] = u
	}
	return s, nil
}

func ofAPI(name string) bool { return slices.Contains(registry.Upstreams, name) }

// Keep has upstreams that stay the same keep their connections.
func (s Set) Keep(before Set) {
	for name, u := range before {
		if now := s[name]; now != nil && u.Same(now) {
			s[name] = u
		}
	}
}

// Retire closes the connections of those that are not in another set.
func (s Set) Retire(now Set) {
	for name, u := range s {
		if u != now[name] {
			u.Retire()
		}
	}
}

// CloseIdle closes the connections that have been idle since before t.
func (s Set) CloseIdle(t time.Time) {
	for _, u := range s {
		u.CloseIdle(t)
	}
}

// Named returns the upstream that a request names, and takes the name from its
// path: what is left is forwarded as it came. u is nil where there is none of
// that name; where none is configured, no path is special.
func (s Set) Named(h *fasthttp.RequestHeader) (name string, u *wire.Upstream) {
	if len(s) == len(registry.Upstreams) {
		return "", nil
	}
	found, rest := cut(h.RequestURI())
	if found == nil {
		return misspelt(h.RequestURI()), nil
	}
	if name = string(found); !ofAPI(name) {
		u = s[name]
	}
	if u != nil {
		h.SetRequestURIBytes(rest)
	}
	return name, u
}

// misspelt is what a path names in another spelling than /u/<name>/…, such as
// //u/<name>, /U/<name> or /x/../u/<name>; empty: it names nothing. What is meant
// for a server with a name, key and all, must not go to another one.
func misspelt(target []byte) (name string) {
	raw, _, _ := bytes.Cut(wire.OriginForm(target), []byte{'?'})
	if !bytes.ContainsAny(raw, `%\`) && !bytes.Contains(raw, []byte("//")) && !bytes.Contains(raw, []byte("/.")) && !bytes.HasPrefix(raw, []byte("/u")) && !bytes.HasPrefix(raw, []byte("/U")) {
		return "" // as nearly all are
	}
	p := string(raw)
	for range maxEncoded {
		decoded, err := url.PathUnescape(p)
		if err != nil || decoded == p {
			break
		}
		p = decoded
	}
	p = strings.ToLower(path.Clean("/" + strings.ReplaceAll(p, `\`, "/")))
	if p == "/u" {
		return "u"
	}
	rest, ok := strings.CutPrefix(p, "/u/")
	if !ok {
		return ""
	}
	name, _, _ = strings.Cut(rest, "/")
	return name
}

// maxEncoded is how many times over a path may be percent-encoded.
const maxEncoded = 4

// Strip takes the name of an upstream from a request's path, whether or not
// there is such an upstream; empty: it names none.
func Strip(h *fasthttp.RequestHeader) (name string) {
	found, rest := cut(h.RequestURI())
	if found != nil {
		name = string(found)
		h.SetRequestURIBytes(rest)
	}
	return name
}

// cut cuts /u/<name>/… before the second slash; nil: the target has another form.
func cut(target []byte) (name, rest []byte) {
	named, ok := bytes.CutPrefix(wire.OriginForm(target), []byte("/u/"))
	i := bytes.IndexByte(named, '/')
	if q := bytes.IndexByte(named, '?'); !ok || i <= 0 || q >= 0 && q < i {
		return nil, nil
	}
	return named[:i], named[i:]
}
