package wire

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/graphiti-proxy/graphiti-proxy/internal/helptest"
)

// forward starts a strict forward proxy and returns its address. The proxy accepts one
// CONNECT request, which must equal want, writes answer, or 200 if answer is "", and then
// echoes.
func forward(t *testing.T, want, answer string, secured *tls.Config) (address string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	if secured != nil {
		ln = tls.NewListener(ln, secured)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c, err := ln.Accept()
		if err != nil {
			return // the proxy was not used
		}
		defer c.Close()
		r := bufio.NewReader(c)
		var got strings.Builder
		for !strings.HasSuffix(got.String(), "\r\n\r\n") {
			line, err := r.ReadString('\n')
			if err != nil {
				return
			}
			got.WriteString(line)
		}
		if got.String() != want {
			t.Errorf("it is asked %q, want %q", got.String(), want)
			return
		}
		if answer == "" {
			answer = "HTTP/1.1 200 Connection established\r\nVia: 1.1 proxy\r\n\r\n"
		}
		if answer != "nothing" {
			_, _ = io.WriteString(c, answer)
		}
		_, _ = io.Copy(c, r)
	}()
	t.Cleanup(func() { ln.Close(); <-done })
	return ln.Addr().String()
}

// environment sets the given proxy variables and clears the others.
func environment(t *testing.T, vars map[string]string) {
	t.Helper()
	for _, name := range []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "REQUEST_METHOD"} {
		t.Setenv(name, "")
	}
	for name, v := range vars {
		t.Setenv(name, v)
	}
}

// echoes checks that c echoes a message.
func echoes(t *testing.T, c net.Conn) {
	t.Helper()
	b := make([]byte, 5)
	must(t, helptest.ErrorOf(io.WriteString(c, "hello")))
	if _, err := io.ReadFull(c, b); err != nil || string(b) != "hello" {
		t.Fatalf("through the connection came %q, %v; want \"hello\"", b, err)
	}
}

func newTestDialer(t *testing.T, base string, roots *tls.Config) (*dialer, error) {
	t.Helper()
	u, err := url.Parse(base)
	must(t, err)
	if roots == nil {
		roots = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	return newDialer(u, roots)
}

func TestTunnelThroughTheProxyOfTheEnvironment(t *testing.T) {
	const plain = "CONNECT api.test:443 HTTP/1.1\r\nHost: api.test:443\r\n\r\n"
	for _, tc := range []struct {
		name, variable, user, base, want string
	}{
		{"https", "HTTPS_PROXY", "", "https://api.test/v1", plain},
		{"https in small letters", "https_proxy", "", "https://api.test", plain},
		{"http", "HTTP_PROXY", "", "http://api.test", "CONNECT api.test:80 HTTP/1.1\r\nHost: api.test:80\r\n\r\n"},
		{"a port", "HTTPS_PROXY", "", "https://api.test:8443", "CONNECT api.test:8443 HTTP/1.1\r\nHost: api.test:8443\r\n\r\n"},
		{"IPv6", "HTTPS_PROXY", "", "https://[2001:db8::1]", "CONNECT [2001:db8::1]:443 HTTP/1.1\r\nHost: [2001:db8::1]:443\r\n\r\n"},
		{"a password", "HTTPS_PROXY", "me:s3cret%40@", "https://api.test", "CONNECT api.test:443 HTTP/1.1\r\nHost: api.test:443\r\nProxy-Authorization: Basic bWU6czNjcmV0QA==\r\n\r\n"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			environment(t, map[string]string{tc.variable: "http://" + tc.user + forward(t, tc.want, "", nil)})
			d, err := newTestDialer(t, tc.base, nil)
			must(t, err)
			c, err := d.dial(t.Context())
			must(t, err)
			defer c.Close()
			echoes(t, c)
		})
	}
	t.Run("over TLS", func(t *testing.T) {
		s := httptest.NewTLSServer(http.NotFoundHandler()) // for its certificate
		s.Close()
		pool := x509.NewCertPool()
		pool.AddCert(s.Certificate())
		secured := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: s.TLS.Certificates}
		environment(t, map[string]string{"HTTPS_PROXY": "https://" + forward(t, plain, "", secured)})
		d, err := newTestDialer(t, "https://api.test", &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool})
		must(t, err)
		c, err := d.dial(t.Context())
		must(t, err)
		defer c.Close()
		echoes(t, c)
	})
}

func TestProxyThatDoesNotHelp(t *testing.T) {
	const want = "CONNECT api.test:443 HTTP/1.1\r\nHost: api.test:443\r\nProxy-Authorization: Basic bWU6czNjcmV0\r\n\r\n"
	for _, tc := range []struct{ name, answer, says string }{
		{"refuses", "HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 5\r\n\r\n", "it answers 407 Proxy Authentication Required"},
		{"knows another status only", "HTTP/1.1 204 No Content\r\n\r\n", "it answers 204"},
		{"is no proxy", "SSH-2.0-OpenSSH_9.2\r\n", "await its answer to CONNECT"},
		{"never ends its head", "HTTP/1.1 200 OK\r\nX: " + strings.Repeat("x", 2*maxAnswer), "await its answer to CONNECT"},
		{"speaks early", "HTTP/1.1 200 OK\r\n\r\nearly", errEarly.Error()},
		{"is silent", "nothing", "i/o timeout"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			environment(t, map[string]string{"HTTPS_PROXY": "http://me:s3cret@" + forward(t, want, tc.answer, nil)})
			d, err := newTestDialer(t, "https://api.test", nil)
			must(t, err)
			ctx := t.Context()
			if tc.answer == "nothing" {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, 50*time.Millisecond)
				defer cancel()
			}
			c, err := d.dial(ctx)
			if err == nil {
				c.Close()
				t.Fatal("there is a connection")
			}
			var ne net.Error
			if timeout := errors.As(err, &ne) && ne.Timeout(); timeout != (tc.answer == "nothing") {
				t.Errorf("timeout is %t: %v", timeout, err)
			}
			if !strings.Contains(err.Error(), tc.says) || !strings.Contains(err.Error(), "through the proxy") || strings.Contains(err.Error(), "s3cret") {
				t.Error(err)
			}
		})
	}
}

func TestEnvironmentThatCannotBeUsed(t *testing.T) {
	for _, v := range []string{"http://me:s3cret@[::1", "[s3cret", "socks5://me:s3cret@proxy.test:1080", "ftp://me:s3cret@proxy.test"} {
		environment(t, map[string]string{"HTTPS_PROXY": v})
		if _, err := newTestDialer(t, "https://api.test", nil); err == nil || !strings.HasPrefix(err.Error(), "HTTPS_PROXY: ") || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("%s: got error %v, want one that begins with HTTPS_PROXY and quotes no password", v, err)
		}
		if _, err := newTestDialer(t, "http://api.test", nil); err != nil {
			t.Errorf("%s, for another scheme: %v", v, err)
		}
	}
}
