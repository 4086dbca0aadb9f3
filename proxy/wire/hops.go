package wire

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"

	"github.com/valyala/fasthttp"
)

// hopField tells a proxy that a request went through it before (RFC 8586). Servers in
// between leave it unchanged and, unlike with Via, none behaves differently because of
// it.
const (
	hopField      = "CDN-Loop"
	hopFieldLower = "cdn-loop"
	hopName       = "graphiti-proxy-"
)

// maxHops is how many proxies like this one may have marked a request. It ends a ring
// of replicas behind one address, in which none may ever see its own mark again.
const maxHops = 8

// markAfter is how many requests may wait for an upstream's answer before the next ones
// are marked. A request in a ring reaches that number at once; usual requests stay as
// the client sent them.
const markAfter = 16

// providers are hosts with no proxy of ours behind them. Requests to them are never
// marked.
var providers = []string{"api.openai.com", "api.anthropic.com", "generativelanguage.googleapis.com"}

// newHop returns a new server's own mark in hopField.
func newHop() string {
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails
	return hopName + hex.EncodeToString(b[:])
}

// marks reports whether to mark a request: it may be in a ring, or another proxy has
// marked it.
func (x *Exchange) marks(up *Upstream) bool {
	return !up.provider && (x.marked || up.waiting.Load() > markAfter)
}

// checkHops refuses a request that this server itself has sent, or that too many
// proxies like it have passed on.
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
