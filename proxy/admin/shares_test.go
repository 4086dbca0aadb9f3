package admin

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// TestHealthWithAllConnectionsInUse checks that health answers while clients hold as
// many connections or calls as they can, at the latest when their heads are late.
func TestHealthWithAllConnectionsInUse(t *testing.T) {
	const imports = "POST " + root + "memory/import HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer %s\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"
	for _, tc := range []struct {
		name, sends string
		answer      string // the expected beginning of the answer, or "" to expect no answer
		count       int
	}{
		{"half a head", "GET /healthz HTTP/1.1\r\nHost: x\r\nX-A", "", maxConns + 1}, // until their timeout
		{"idle, after a call", "GET " + root + "queue HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer secret\r\n\r\n", "HTTP/1.1 200", callsPerSecond},
		{"imports of one person", fmt.Sprintf(imports, "josh's"), "", 2 * maxCalls},
		{"calls of the operator", fmt.Sprintf(imports, "secret"), "", 2 * maxCalls},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			h := newHouse(t, "secret")
			go func() { _ = h.Serve() }() // ends with the test
			for range tc.count {
				c, err := net.Dial("tcp", h.Addr().String())
				must(t, err)
				defer c.Close()
				must(t, helptest.ErrorOf(io.WriteString(c, tc.sends)))
				if tc.answer == "" {
					continue
				}
				if line, err := bufio.NewReader(c).ReadString('\n'); !strings.HasPrefix(line, tc.answer) {
					t.Fatalf("%q, %v, want %s", line, err, tc.answer)
				}
			}
			for range 10 {
				asks := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: helptest.Patience}
				resp, err := asks.Get("http://" + h.Addr().String() + "/healthz")
				must(t, err)
				resp.Body.Close()
			}
		})
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
		leave, ok := p.take(c, imports)
		if ok != want {
			t.Errorf("%s: got a place: %v, want %v", what, ok, want)
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
