package proxy

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/valyala/fasthttp"

	"github.com/graphiti-proxy/graphiti-proxy/internal/dialect/registry"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/wire"
)

// Upstreams are upstreams by name. It is not changed once it is in use.
type Upstreams map[string]*wire.Upstream

// NewUpstreams makes the upstreams. There must be a base address for each name of
// registry.Upstreams.
func NewUpstreams(bases map[string]string, roots *tls.Config, connect time.Duration) (Upstreams, error) {
	s := make(Upstreams)
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
func (s Upstreams) Keep(before Upstreams) {
	for name, u := range before {
		if now := s[name]; now != nil && u.Same(now) {
			s[name] = u
		}
	}
}

// Retire closes the connections of those that are not in another set.
func (s Upstreams) Retire(now Upstreams) {
	for name, u := range s {
		if u != now[name] {
			u.Retire()
		}
	}
}

// CloseIdle closes the connections that have been idle since before t.
func (s Upstreams) CloseIdle(t time.Time) {
	for _, u := range s {
		u.CloseIdle(t)
	}
}

// upstreamNamed is what a path names.
type upstreamNamed struct {
	Name     string
	Upstream *wire.Upstream // nil: there is none of that name, or the name is not spelt plainly
	Path     []byte         // what stands behind the name, in its plain spelling, where there is no upstream
}

// Named returns the upstream that a request names, and takes the name from its
// path: what is left is forwarded as it came. ok is false where it names none;
// where none is configured, no path is special.
//
// What only means /u/<name>/… in another spelling has no upstream: its credential
// is one for a server that was to be named, and must not go to another.
func (s Upstreams) Named(h *fasthttp.RequestHeader) (n upstreamNamed, ok bool) {
	if len(s) == len(registry.Upstreams) {
		return upstreamNamed{}, false
	}
	target := h.RequestURI()
	name, rest := cut(target)
	meant, path, ok := cutPlain(wire.PlainPath(target))
	n = upstreamNamed{Name: string(name), Path: path}
	if !ofAPI(n.Name) && bytes.Equal(name, meant) {
		n.Upstream = s[n.Name]
	}
	if n.Upstream != nil {
		n.Path = nil // SetRequestURIBytes may write where it is
		h.SetRequestURIBytes(rest)
	}
	return n, ok || name != nil
}

// stripUpstream takes the name of an upstream from a request's path, whether or not
// there is such an upstream; empty: it names none.
func stripUpstream(h *fasthttp.RequestHeader) (name string) {
	found, rest := cut(h.RequestURI())
	if found != nil {
		name = string(found)
		h.SetRequestURIBytes(rest)
	}
	return name
}

// cut cuts /u/<name>/… before the second slash; nil: the target has another form.
func cut(target []byte) (name, rest []byte) {
	path, ok := bytes.CutPrefix(wire.OriginForm(target), []byte("/u/"))
	i := bytes.IndexByte(path, '/')
	if q := bytes.IndexByte(path, '?'); !ok || i <= 0 || q >= 0 && q < i {
		return nil, nil
	}
	return path[:i], path[i:]
}

// cutPlain cuts /u/<name>/… before the second slash, where the path is in its
// plain spelling but for capital letters. The name may be missing.
func cutPlain(path []byte) (name, rest []byte, ok bool) {
	if len(path) < 2 || path[1]|0x20 != 'u' || len(path) > 2 && path[2] != '/' {
		return nil, path, false
	}
	name = bytes.TrimPrefix(path[2:], []byte{'/'})
	i := bytes.IndexByte(name, '/')
	if i < 0 {
		i = len(name)
	}
	return name[:i], name[i:], true
}
