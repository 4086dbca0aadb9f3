package wire

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/net/http/httpproxy"
)

// maxAnswer bounds, in bytes, what a forward proxy may send before the tunnel begins.
const maxAnswer = 64 << 10

// dialer opens connections to one server. It is safe for concurrent use.
type dialer struct {
	target string      // host:port of the server
	proxy  string      // host:port of the forward proxy; empty: there is none
	tls    *tls.Config // with the forward proxy; nil: without TLS
	auth   string      // the value of Proxy-Authorization; may be empty
}

// newDialer reads from the environment how to reach the server of a base address:
// http:// through HTTP_PROXY, https:// through HTTPS_PROXY, but directly when NO_PROXY
// names it or it is on this machine. roots verify a forward proxy that is itself
// reached over TLS. The error quotes no password.
func newDialer(base *url.URL, roots *tls.Config) (*dialer, error) {
	d := &dialer{target: net.JoinHostPort(base.Hostname(), portOf(base))}
	env := httpproxy.FromEnvironment()
	variable, value := "HTTP_PROXY", env.HTTPProxy
	if base.Scheme == "https" {
		variable, value = "HTTPS_PROXY", env.HTTPSProxy
	}
	proxy, err := env.ProxyFunc()(base)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", variable, err)
	case proxy == nil && !readable(value), proxy != nil && strings.Trim(proxy.Path, "/") != "": // it was read in some other way
		return nil, fmt.Errorf("%s: not the address of a proxy; write http://host:port", variable)
	case proxy == nil:
		return d, nil
	}
	switch proxy.Scheme {
	case "http":
	case "https":
		d.tls = roots.Clone()
		d.tls.ServerName, d.tls.NextProtos = proxy.Hostname(), []string{"http/1.1"}
	default:
		return nil, fmt.Errorf("%s: %s:// is not supported on the way to upstreams; write http://host:port, or name %s in NO_PROXY", variable, proxy.Scheme, base.Hostname())
	}
	d.proxy = net.JoinHostPort(proxy.Hostname(), portOf(proxy))
	if u := proxy.User; u != nil {
		password, _ := u.Password()
		d.auth = "Basic " + base64.StdEncoding.EncodeToString([]byte(u.Username()+":"+password))
	}
	return d, nil
}

// readable reports whether a variable's value can be an address; http:// may be left
// out.
func readable(value string) bool {
	_, err := url.Parse(value)
	if err != nil {
		_, err = url.Parse("http://" + value)
	}
	return err == nil
}

func portOf(u *url.URL) string {
	switch {
	case u.Port() != "":
		return u.Port()
	case u.Scheme == "https":
		return "443"
	}
	return "80"
}

// dial opens a connection.
func (d *dialer) dial(ctx context.Context) (net.Conn, error) {
	address := d.target
	if d.proxy != "" {
		address = d.proxy
	}
	var nd net.Dialer
	c, err := nd.DialContext(ctx, "tcp", address)
	if err != nil || d.proxy == "" {
		return c, d.explain(err)
	}
	// ctx ends every wait below.
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	tunnel, err := d.tunnel(ctx, c)
	if !stop() && err == nil {
		err = ctx.Err() // the connection has a deadline that passed
	}
	if err != nil {
		c.Close()
		return nil, d.explain(err)
	}
	return tunnel, nil
}

func (d *dialer) explain(err error) error {
	switch {
	case err == nil:
		return nil
	case d.proxy == "":
		return fmt.Errorf("connect to %s: %w", d.target, err)
	}
	return fmt.Errorf("connect to %s through the proxy %s, which the environment names: %w", d.target, d.proxy, err)
}

// errEarly says that the server spoke first; its bytes would be lost.
var errEarly = errors.New("something came through the tunnel before anything was sent")

// tunnel asks the forward proxy for a connection to the server.
func (d *dialer) tunnel(ctx context.Context, c net.Conn) (net.Conn, error) {
	if d.tls != nil {
		tc := tls.Client(c, d.tls)
		if err := tc.HandshakeContext(ctx); err != nil {
			return nil, fmt.Errorf("TLS: %w", err)
		}
		c = tc
	}
	ask := "CONNECT " + d.target + " HTTP/1.1\r\nHost: " + d.target + "\r\n"
	if d.auth != "" {
		ask += "Proxy-Authorization: " + d.auth + "\r\n"
	}
	if _, err := io.WriteString(c, ask+"\r\n"); err != nil {
		return nil, err
	}
	r := bufio.NewReader(io.LimitReader(c, maxAnswer))
	resp, err := http.ReadResponse(r, &http.Request{Method: http.MethodConnect}) //nolint:bodyclose // a tunnel is no body, and that of a refusal nobody reads
	if err != nil {
		return nil, fmt.Errorf("await its answer to CONNECT: %w", err)
	}
	switch {
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("it answers %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	case r.Buffered() > 0:
		return nil, errEarly
	}
	return c, nil
}
