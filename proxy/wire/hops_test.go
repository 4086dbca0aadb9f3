package wire

import (
	"bufio"
	"crypto/tls"
	"strings"
	"testing"
	"time"

	"github.com/valyala/fasthttp"
)

// TestHopIsAdded where a request could go round in a ring, and nowhere else.
func TestHopIsAdded(t *testing.T) {
	w, _ := newWire(t)
	for name, tc := range map[string]struct {
		upstream string
		waiting  int64
		hops     string
		marked   bool
	}{
		"the first":                  {"http://up", 0, "", false},
		"behind another network":     {"http://up", 0, "CDN-Loop: cloudflare; loops=1\r\n", false},
		"while many wait":            {"http://up", markAfter + 1, "", true},
		"marked by a proxy in front": {"http://up", 0, "CDN-Loop: cloudflare; loops=1, graphiti-proxy-0123456789ab\r\n", true},
		"OpenAI":                     {"https://" + providers[0], 2 * markAfter, "CDN-Loop: graphiti-proxy-0123456789ab\r\n", false},
		"Anthropic":                  {"https://" + providers[1], 2 * markAfter, "CDN-Loop: graphiti-proxy-0123456789ab\r\n", false},
		"Google":                     {"https://" + providers[2], 2 * markAfter, "CDN-Loop: graphiti-proxy-0123456789ab\r\n", false},
	} {
		up, err := NewUpstream("up", tc.upstream, &tls.Config{MinVersion: tls.VersionTLS12}, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		up.waiting.Store(tc.waiting)
		var ctx fasthttp.RequestCtx
		if err := ctx.Request.Header.Read(bufio.NewReader(strings.NewReader("GET /v1/x HTTP/1.1\r\nHost: p\r\n" + tc.hops + "\r\n"))); err != nil {
			t.Fatal(err)
		}
		x := w.Begin(&ctx, Timeouts{})
		if err := x.Check(up); err != nil {
			t.Fatal(err)
		}
		if err := x.buildHead(up, &Outgoing{}); err != nil {
			t.Fatal(err)
		}
		want := "GET /v1/x HTTP/1.1\r\nHost: " + up.Host + "\r\n" + tc.hops
		if tc.marked {
			want += "CDN-Loop: " + w.hop + "\r\n"
		}
		if got := string(x.out); got != want+"\r\n" {
			t.Errorf("%s: the upstream gets %q, want %q", name, got, want)
		}
		x.End()
	}
}

// TestWaitingEnds with the request, answered or not.
func TestWaitingEnds(t *testing.T) {
	w, _ := newWire(t)
	up, err := NewUpstream("up", "http://127.0.0.1:1", nil, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	var ctx fasthttp.RequestCtx
	x := w.Begin(&ctx, Timeouts{})
	if _, err := x.Forward(up, Outgoing{}); err == nil || up.waiting.Load() != 0 {
		t.Errorf("%v, %d wait afterwards", err, up.waiting.Load())
	}
	x.End()
}
