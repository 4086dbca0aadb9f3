package admin

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/internal/service"
)

// TestLoginsEnd checks that a login ends half an hour after its last request, and at the latest
// twelve hours after its beginning.
func TestLoginsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		key, l := newToken("secret"), begin(sumOf("secret"))
		after := func(pause time.Duration) bool {
			time.Sleep(pause)
			got, ok := key.opened(key.sealed(l))
			if longer, renewed := got.renewed(); ok && renewed {
				l = longer
			}
			return ok && sum(got.Proof) == sumOf("secret")
		}
		for _, tc := range []struct {
			pause time.Duration
			there bool
		}{{idleFor - time.Second, true}, {idleFor - time.Second, true}, {idleFor, false}} {
			if after(tc.pause) != tc.there {
				t.Errorf("after %s without a request it is there: %v, want %v", tc.pause, !tc.there, tc.there)
			}
		}
		l = begin(sumOf("secret"))
		lasted := time.Duration(0)
		for lasted < 2*longest && after(5*time.Minute) {
			lasted += 5 * time.Minute
		}
		if lasted += 5 * time.Minute; lasted != longest {
			t.Errorf("a login that is used lasts for %s, want %s", lasted, longest)
		}
	})
}

// TestLoginsOfReplicas checks that a login and a link are valid only at servers with the same token,
// and that a logout ends the login at all of them.
func TestLoginsOfReplicas(t *testing.T) {
	here, there, other := newHouse(t, "secret"), newHouse(t, "secret"), newHouse(t, "another")
	there.o.Host = here.o.Host // a shared store
	link, _ := strings.CutPrefix(here.Link(service.Caller{Name: "mira, by a link", Own: service.Selector{User: "user:mira"}}).Path, "/login?link=")
	for name, secret := range map[string]string{"the operator": "secret", "josh": "josh's", "mira, by a link": link} {
		b := here.browser()
		b.login(secret)
		for _, tc := range []struct {
			h    *house
			want string
		}{{here, name}, {there, name}, {other, ""}} {
			r := httptest.NewRequest("GET", "/", nil)
			r.AddCookie(&http.Cookie{Name: tc.h.loginCookie(r), Value: b.session()})
			if v, _, _ := tc.h.visit(httptest.NewRecorder(), r); v.Caller.Name != tc.want {
				t.Errorf("%s: let in as %q, want %q", name, v.Caller.Name, tc.want)
			}
		}
	}
	b, stolen := here.browser(), there.browser()
	b.login("josh's")
	stolen.cookies[stolen.name()] = b.session()
	if b.send("POST", "/logout", ""); stolen.who() != "" {
		t.Errorf("after the logout at another replica: let in as %q", stolen.who())
	}
	b = there.browser()
	if b.login(link); b.who() != "mira, by a link" {
		t.Errorf("a link of another replica lets in %q", b.who())
	}
}

// TestLinksEnd checks that a link expires after fifteen minutes, like the logins with it.
func TestLinksEnd(t *testing.T) {
	h := newHouse(t, "secret")
	h.token.Load().seal()
	synctest.Test(t, func(t *testing.T) {
		link := h.Link(service.Caller{Name: "mira"})
		_, secret, _ := strings.Cut(link.Path, "link=")
		l, ok := h.token.Load().opened(secret)
		if longer, renewed := l.renewed(); !ok || renewed || !longer.Until.Equal(link.Until) {
			t.Errorf("the link is valid: %v, its login lasts until %s, want %s", ok, longer.Until, link.Until)
		}
		time.Sleep(15 * time.Minute)
		if _, ok := h.token.Load().opened(secret); ok {
			t.Error("the link is still valid")
		}
	})
}

// TestSealedLogins checks that changed texts are rejected, and without a token all texts.
func TestSealedLogins(t *testing.T) {
	key := newToken("secret")
	text := key.sealed(begin(sumOf("secret")))
	last := "A"
	if strings.HasSuffix(text, last) {
		last = "Q"
	}
	for _, tc := range []struct {
		of   *token
		text string
		want bool
	}{
		{key, text, true}, {key, text[:len(text)-1] + last, false}, {key, text[1:], false}, {key, "", false}, {key, url.QueryEscape("chosen by somebody"), false},
		{newToken(""), newToken("").sealed(begin(sumOf(""))), false},
	} {
		if _, ok := tc.of.opened(tc.text); ok != tc.want {
			t.Errorf("opened(%q) = %v, want %v", tc.text, ok, tc.want)
		}
	}
}
