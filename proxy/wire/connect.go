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

// maxAnswer limits a forward proxy's answer before the tunnel begins, in bytes.
const maxAnswer = 64 << 10

// dialer opens connections to one server. It is safe for concurrent use.
type dialer struct {
	target string      // host:port of the server
	proxy  string      // host:port of the forward proxy, or ""
	tls    *tls.Config // for the forward proxy; nil means plain TCP
	auth   string      // value of Proxy-Authorization, or ""
}

// newDialer returns a dialer for the server of a base address. The environment chooses
// the forward proxy: HTTP_PROXY for http:// and HTTPS_PROXY for https://, but none for
// hosts in NO_PROXY and on this machine. roots verify a forward proxy that uses TLS.
// The error contains no password.
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
	case proxy == nil && !readable(value), proxy != nil && strings.Trim(proxy.Path, "/") != "": // the library parsed the value differently
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

// readable reports whether a variable's value parses as an address, with or without
// http://.
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

// dial opens a connection, through the forward proxy if there is one.
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
	// ctx interrupts all reads and writes below.
	stop := context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
	tunnel, err := d.tunnel(ctx, c)
	if !stop() && err == nil {
		err = ctx.Err() // the deadline has passed
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

// errEarly reports that the server spoke first: the reader has buffered its bytes.
var errEarly = errors.New("something came through the tunnel before anything was sent")

// tunnel requests a connection to the server from the forward proxy.
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
