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

// Upstreams are upstreams by name. An Upstreams in use does not change.
type Upstreams map[string]*wire.Upstream

// NewUpstreams returns the upstreams with these base addresses. There must be one for
// each name in registry.Upstreams.
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
		s[name] = u
	}
	return s, nil
}

func ofAPI(name string) bool { return slices.Contains(registry.Upstreams, name) }

// Keep reuses the unchanged upstreams of before, with their connections.
func (s Upstreams) Keep(before Upstreams) {
	for name, u := range before {
		if now := s[name]; now != nil && u.Same(now) {
			s[name] = u
		}
	}
}

// Retire closes the connections of the upstreams that are not in now.
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

// upstreamNamed is the upstream that a path names.
type upstreamNamed struct {
	Name     string
	Upstream *wire.Upstream // nil if the name is unknown, or is not in plain spelling
	Path     []byte         // without an upstream, the path after the name, in plain spelling
}

// Named returns the upstream that a request names, and removes the name from its path.
// The rest of the path is forwarded unchanged. ok is false if the request names no
// upstream, or if only the APIs' upstreams are configured.
//
// A path that means /u/<name>/… in another spelling has no upstream: its credential is
// for a certain server, and must not reach another.
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
		n.Path = nil // SetRequestURIBytes may overwrite it
		h.SetRequestURIBytes(rest)
	}
	return n, ok || name != nil
}

// cut splits /u/<name>/… into the name and the rest, which begins with a slash; nil if
// the target has another form.
func cut(target []byte) (name, rest []byte) {
	path, ok := bytes.CutPrefix(wire.OriginForm(target), []byte("/u/"))
	i := bytes.IndexByte(path, '/')
	if q := bytes.IndexByte(path, '?'); !ok || i <= 0 || q >= 0 && q < i {
		return nil, nil
	}
	return path[:i], path[i:]
}

// cutPlain splits /u/<name>/… as cut does. The path must be in plain spelling, except for
// capital letters. The name may be missing.
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
