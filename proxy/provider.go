package proxy

import (
	"bytes"
	"encoding/hex"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/graphiti-proxy/graphiti-proxy/graphiti"
	"github.com/graphiti-proxy/graphiti-proxy/proxy/identity"
)

// Providers receives the provider and credential of people's turns, for a model that
// distils facts. It must not block.
type Providers interface {
	// Saw reports the base address of a provider's Chat Completions API, its id in turns, and
	// the credential of a request that the provider accepted.
	Saw(owner, id, url, key string)
}

// provider returns the base address of the Chat Completions API of a call's provider, or "" if
// there is none, or no model distils facts there. id names it in turns.
func (c *call) provider() (id, url string) {
	if c.memory.Providers == nil {
		return "", ""
	}
	path := c.path()
	base, ok := chatBase(string(path))
	if !ok {
		return "", ""
	}
	url = c.route.upstream.Address() + base
	sum := graphiti.Digest("provider", url)
	return hex.EncodeToString(sum[:8]), url
}

// sawProvider reports a turn's provider and credential, if the request has just one
// credential. A bearer token for Anthropic's API is a login, not a key, and is not used.
func (c *call) sawProvider(owner string) {
	id, url := c.provider()
	key, single := identity.Secret(c.head)
	path := c.path()
	if id == "" || owner == "" || !single || bytes.HasSuffix(path, []byte("/messages")) && len(c.head.Peek(fasthttp.HeaderAuthorization)) > 0 {
		return
	}
	c.memory.Providers.Saw(owner, id, url, key)
}

// path returns the path of a request, without slashes at its end.
func (c *call) path() []byte {
	path, _, _ := bytes.Cut(c.head.RequestURI(), []byte{'?'})
	return bytes.TrimRight(path, "/")
}

// chatBase returns the base path of the Chat Completions API that belongs to a request's
// path: Anthropic and Google serve one next to their own APIs.
func chatBase(path string) (base string, ok bool) {
	if at := strings.Index(path, "/models/"); at >= 0 {
		return path[:at] + "/openai", true
	}
	for _, end := range []string{"/chat/completions", "/responses", "/messages"} {
		if base, ok = strings.CutSuffix(path, end); ok {
			return base, true
		}
	}
	return "", false
}
