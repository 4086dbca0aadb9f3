package wire

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"

	"github.com/valyala/fasthttp"
)

// hopField marks a request as forwarded by a proxy (RFC 8586). Intermediate servers
// leave it unchanged, and unlike Via, it does not affect their behavior.
const (
	hopField      = "CDN-Loop"
	hopFieldLower = "cdn-loop"
	hopName       = "graphiti-proxy-"
)

// maxHops limits the marks of proxies like this one in a request. It ends a loop of
// replicas behind one address, where a replica may never see its own mark again.
const maxHops = 8

// markAfter is the number of requests waiting for an upstream from which further ones
// are marked. A forwarding loop reaches it at once; other requests stay unmarked.
const markAfter = 16

// providers lists hosts that never lead back to this proxy. Requests to them are never
// marked.
var providers = []string{"api.openai.com", "api.anthropic.com", "generativelanguage.googleapis.com"}

// newHop returns a new server's unique mark for hopField.
func newHop() string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails
	return hopName + hex.EncodeToString(b[:])
}

// marks reports whether to mark a request: it may be in a forwarding loop, or another
// proxy has marked it.
func (x *Exchange) marks(up *Upstream) bool {
	return !up.provider && (x.marked || up.waiting.Load() > markAfter)
}

// checkHops rejects a request that this server has sent itself, or that too many
// proxies like it have forwarded.
func (x *Exchange) checkHops(up *Upstream, hops [][]byte) error {
	n := 0
	for _, list := range hops {
		for hop := range tokens(list) {
			if string(hop) == x.w.hop {
				n = maxHops
			} else if bytes.HasPrefix(hop, []byte(hopName)) {
				n++
				x.marked = true
			}
		}
	}
	if n < maxHops {
		return nil
	}
	setting := up.Setting
	x.w.o.Log.Warn("a request came back to the proxy that sent it", "setting", setting, "upstream", up.Host,
		"remedy", "set it to the provider's address; now it is a way back to this proxy")
	return &ClientError{Status: fasthttp.StatusLoopDetected, Message: "graphiti-proxy: this request came back to the proxy that sent it; set " + setting +
		" to the provider's address, not to one that leads back here"}
}
