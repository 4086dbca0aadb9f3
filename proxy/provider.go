package proxy

import (
	"bytes"
	"strings"

	"github.com/valyala/fasthttp"

	"github.com/graphiti-proxy/graphiti-proxy/proxy/identity"
)

// Providers receives the provider and credential of people's turns, for a model that
// distils facts. It must not block.
type Providers interface {
	// Saw reports the base address of a provider's Chat Completions API, and the credential
	// of a request that the provider accepted.
	Saw(owner, url, key string)
}

// sawProvider reports a turn's provider and credential, if the request has just one
// credential. A bearer token for Anthropic's API is a login, not a key, and is not used.
func (c *call) sawProvider(owner string) {
	if c.memory.Providers == nil || owner == "" {
		return
	}
	path, _, _ := bytes.Cut(c.head.RequestURI(), []byte{'?'})
	path = bytes.TrimRight(path, "/")
	base, ok := chatBase(string(path))
	key, single := identity.Secret(c.head)
	if !ok || !single || strings.HasSuffix(string(path), "/messages") && len(c.head.Peek(fasthttp.HeaderAuthorization)) > 0 {
		return
	}
	c.memory.Providers.Saw(owner, c.route.upstream.Address()+base, key)
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
