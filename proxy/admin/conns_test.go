package admin

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/internal/polltest"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// TestHealthAnswersBesideHeldConnections checks that health answers while clients hold as
// many connections or calls as they can.
func TestHealthAnswersBesideHeldConnections(t *testing.T) {
	const imports = "POST " + root + "memory/import HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"
	for _, tc := range []struct {
		name, sends string
		answer      string // the expected beginning of the answer, or "" to expect no answer
		count       int
	}{
		{"silent", "", "", 2 * maxConns},
		{"half a head", "GET /healthz HTTP/1.1\r\nHost: x\r\nX-A", "", 2 * maxConns},
		{"idle", "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", "HTTP/1.1 200", 2 * maxConns},
		{"idle, after a call", "GET " + root + "queue HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer secret\r\n\r\n", "HTTP/1.1 200", callsPerSecond},
		{"imports of one person", fmt.Sprintf(imports, "josh's"), "", 2 * maxCalls},
		{"calls of the operator", fmt.Sprintf(imports, "secret"), "", 2 * maxCalls},
		{"a form of somebody unknown", "POST /login HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\na", "", 2 * maxConns},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := newHouse(t, "secret")
			go func() { _ = h.Serve() }() // ends with the test
			for range tc.count {
				c, err := net.Dial("tcp", h.Addr().String())
				if err != nil {
					t.Fatal(err)
				}
				defer c.Close()
				_, _ = io.WriteString(c, tc.sends) // the server may have closed c for another connection
				if tc.answer == "" {
					continue
				}
				if line, err := bufio.NewReader(c).ReadString('\n'); !strings.HasPrefix(line, tc.answer) {
					t.Fatalf("%q, %v, want %s", line, err, tc.answer)
				}
			}
			for range 10 {
				asks := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: polltest.Patience}
				resp, err := asks.Get("http://" + h.Addr().String() + "/healthz")
				if err != nil {
					t.Fatal(err)
				}
				resp.Body.Close()
			}
			h.conns.mu.Lock()
			defer h.conns.mu.Unlock()
			if len(h.conns.open) > maxConns {
				t.Errorf("%d connections are open, want %d at most", len(h.conns.open), maxConns)
			}
		})
	}
}

// held is a connection that records Close.
type held struct {
	net.Conn
	from   string
	closed bool
}

func (h *held) Close() error         { h.closed = true; return nil }
func (h *held) RemoteAddr() net.Addr { return net.TCPAddrFromAddrPort(netip.MustParseAddrPort(h.from)) }

// TestConnectionsMakeRoom checks that the oldest waiting connection is closed, of an
// address with too many or of all addresses, those of callers last, and never one with a
// running call.
func TestConnectionsMakeRoom(t *testing.T) {
	cs := newConns([]netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")})
	add := func(from string) (*held, context.Context) {
		h := &held{from: from}
		ctx := cs.add(t.Context(), h)
		return h, ctx
	}
	open := func(what string, want bool, c *held) {
		t.Helper()
		if c.closed == want {
			t.Errorf("%s is open: %v, want %v", what, !c.closed, want)
		}
	}
	busy, ctx := add("203.0.113.1:1")
	serveCaller(ctx)
	caller, ctx := add("203.0.113.1:2")
	serveCaller(ctx)()
	first, _ := add("203.0.113.1:3")
	second, _ := add("203.0.113.1:4")
	cs.change(first, http.StateActive) // first now has the latest request
	for range maxStrangers - 2 {
		add("203.0.113.1:5")
	}
	open("the second", true, second)
	last, _ := add("203.0.113.1:6")
	open("the second, of an address with too many", false, second)
	open("the first, which is newer", true, first)
	proxy, _ := add("192.0.2.1:1")
	for range maxStrangers {
		add("192.0.2.1:2")
	}
	open("a trusted proxy's", true, proxy)
	for i := 0; len(cs.open) < maxConns; i++ {
		add(fmt.Sprintf("[2001:db8:0:%x::1]:1", i))
	}
	add("203.0.113.2:1")
	open("the oldest of strangers", false, first)
	for range 2 * maxConns {
		add("192.0.2.1:3")
	}
	open("a stranger's", false, last)
	open("a caller's", true, caller)
	for range maxConns {
		_, ctx := add("192.0.2.1:4")
		serveCaller(ctx)()
	}
	open("a caller's that is older than other callers'", false, caller)
	open("a call that runs", true, busy)
	if len(cs.open) != maxConns {
		t.Errorf("%d are open, want %d", len(cs.open), maxConns)
	}
	for c := range cs.open {
		cs.change(c, http.StateClosed)
	}
	if len(cs.open) != 0 {
		t.Errorf("%d are open, want none", len(cs.open))
	}
}

// TestPlaces checks that operators and people have separate places for calls, that a person
// has a limited number of them, and only one for an import, over the API or a page.
func TestPlaces(t *testing.T) {
	p := newPlaces()
	josh := func(credential string) service.Caller {
		return service.Caller{Name: credential, Own: service.Selector{User: "user:josh"}}
	}
	take := func(what string, c service.Caller, imports, want bool) (leave func()) {
		t.Helper()
		leave, why := p.take(c, imports)
		if (why == "") != want {
			t.Errorf("%s: %q, want that there is a place: %v", what, why, want)
		}
		return leave
	}
	end := take("an import", josh("a"), true, true)
	take("another of the same person", josh("b"), true, false)
	for range maxOfOne - 1 {
		take("a call of the person", josh("b"), false, true)
	}
	take("one call more", josh("a"), false, false)
	end()
	end = take("an import after the first", josh("b"), true, true)
	for i := range maxCalls - maxOfOne {
		take("a call of another", service.Caller{Own: service.Selector{User: fmt.Sprint(i)}}, false, true)
	}
	take("a call of one more", service.Caller{Own: service.Selector{User: "user:ann"}}, false, false)
	for range maxCalls {
		take("an import of an operator", service.Operator, true, true)
	}
	take("one call more of operators", service.Operator, false, false)
	end()
	take("a call of another, after one has ended", service.Caller{Own: service.Selector{User: "user:ann"}}, true, true)
	for path, want := range map[string]bool{root + "memory/import": true, "/memory/import": true, "/memory/show": false, root + "memory/import/x": false} {
		if got := isImport(httptest.NewRequest("POST", path, nil)); got != want {
			t.Errorf("POST %s imports: %v, want %v", path, got, want)
		}
	}
	if isImport(httptest.NewRequest("GET", "/memory/import", nil)) {
		t.Error("the form imports")
	}
}
