package wire

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"

	"github.com/valyala/fasthttp"
)

// hopField tells a proxy that a request went through it before (RFC 8586).
// Servers in between leave it as it is, and none behaves otherwise because of
// it, as some do where they see Via.
const (
	hopField      = "CDN-Loop"
	hopFieldLower = "cdn-loop"
	hopName       = "graphiti-proxy-"
)

// maxHops is how many proxies like this one may have marked a request. It ends a
// ring of replicas behind one address, where none need see its own mark again.
const maxHops = 8

// unmarked is how many requests an upstream may have without having answered
// one, before those that follow are marked. A request that goes round in a ring
// reaches that number at once, so that nothing is added to a request without need.
const unmarked = 16

// providers are hosts that no proxy is behind. Requests to them are never
// marked: what they get is what the client sent.
var providers = []string{"api.openai.com", "api.anthropic.com", "generativelanguage.googleapis.com"}

// newHop is what a server writes into hopField: another one for each.
func newHop() string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails
	return hopName + hex.EncodeToString(b[:])
}

// marks reports whether a request that is about to be sent carries hopField:
// it could go round in a ring, or another proxy thought so.
func (x *Exchange) marks(up *Upstream) bool {
	return !up.provider && (x.marked || up.waiting.Load() > unmarked)
}

// checkHops refuses a request that this server has sent itself, or that too many
// like it have passed on.
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
	return &ClientError{fasthttp.StatusLoopDetected, "graphiti-proxy: this request came back to the proxy that sent it; set " + setting +
		" to the provider's address, not to one that leads back here"}
}
