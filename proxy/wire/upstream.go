package wire

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// idleUpstream is the maximum idle time of an upstream connection. Many servers
	// close theirs after 60 seconds or more; closing first avoids sending a request
	// on a closing connection.
	idleUpstream = 30 * time.Second

	// maxIdle limits the idle connections to one upstream.
	maxIdle = 512
)

// Upstream is a server that requests are forwarded to, with a pool of idle connections.
// The newest is last and is used first, so that surplus ones expire.
type Upstream struct {
	Name    string // in metrics and settings
	Host    string // value of the Host field
	base    *url.URL
	dialer  *dialer
	prefix  string // path before every request path, without a final slash
	tls     *tls.Config
	timeout time.Duration // for connecting, TLS included

	mu      sync.Mutex // protects the fields below
	idle    []*upstreamConn
	aging   bool // age will be called
	retired bool // the pool accepts no more connections
}

// upstreamConn is one connection to an upstream. It has one owner at a time.
type upstreamConn struct {
	net.Conn
	of    *Upstream
	sock  socket
	since time.Time // start of the idle time

	readBy, writeBy time.Time // current deadlines, see renew
}

// NewUpstream returns the upstream at the address base. roots verify its TLS
// certificate, and timeout limits connecting.
func NewUpstream(name, base string, roots *tls.Config, timeout time.Duration) (*Upstream, error) {
	u, err := url.Parse(base)
	if err != nil {
		return nil, fmt.Errorf("read upstream address: %w", err)
	}
	up := &Upstream{
		Name:    name,
		Host:    u.Host,
		base:    u,
		prefix:  strings.TrimSuffix(u.EscapedPath(), "/"),
		timeout: timeout,
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
		return nil, fmt.Errorf("upstream address %q is not http:// or https:// with a host", u.Redacted())
	}
	if up.dialer, err = newDialer(u, roots); err != nil {
		return nil, err //nolint:wrapcheck // it names the variable that is wrong
	}
	if u.Scheme == "https" {
		up.tls = roots.Clone()
		up.tls.ServerName = u.Hostname()
		up.tls.NextProtos = []string{"http/1.1"}
	}
	return up, nil
}

// Address returns the upstream's address, without a final slash.
func (u *Upstream) Address() string { return u.base.Scheme + "://" + u.Host + u.prefix }

// take returns the newest idle connection that its peer has neither closed nor written
// to, or a new connection. reused reports which.
func (u *Upstream) take(ctx context.Context) (c *upstreamConn, reused bool, err error) {
	for {
		u.mu.Lock()
		n := len(u.idle) - 1
		if n < 0 {
			u.mu.Unlock()
			break
		}
		c, u.idle[n] = u.idle[n], nil
		u.idle = u.idle[:n]
		u.mu.Unlock()
		if c.sock.quiet() {
			return c, true, nil
		}
		c.Close()
	}
	c, err = u.dial(ctx)
	return c, false, err
}

func (u *Upstream) dial(ctx context.Context) (*upstreamConn, error) {
	ctx, cancel := context.WithTimeout(ctx, u.timeout)
	defer cancel()
	raw, err := u.dialer.dial(ctx)
	if err != nil {
		return nil, err //nolint:wrapcheck // it says where to
	}
	c := &upstreamConn{Conn: raw, of: u, sock: socketOf(raw)}
	if u.tls == nil {
		return c, nil
	}
	tc := tls.Client(raw, u.tls)
	if err := tc.HandshakeContext(ctx); err != nil {
		raw.Close()
		return nil, fmt.Errorf("TLS with %s: %w", u.Host, err)
	}
	c.Conn = tc
	return c, nil
}

// give returns a connection to the pool after its last answer was read completely.
func (u *Upstream) give(c *upstreamConn) {
	c.since = time.Now()
	u.mu.Lock()
	full := u.retired || len(u.idle) >= maxIdle
	if !full {
		u.idle = append(u.idle, c)
		if !u.aging {
			u.aging = true
			time.AfterFunc(idleUpstream, u.age)
		}
	}
	u.mu.Unlock()
	if full {
		c.Close()
	}
}

// age closes the connections that were idle for idleUpstream.
func (u *Upstream) age() {
	u.CloseIdle(time.Now().Add(-idleUpstream))
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.aging = len(u.idle) > 0; u.aging {
		time.AfterFunc(idleUpstream/6, u.age)
	}
}

// CloseIdle closes the connections idle since before t.
func (u *Upstream) CloseIdle(t time.Time) {
	u.mu.Lock()
	n := 0
	for n < len(u.idle) && u.idle[n].since.Before(t) {
		n++
	}
	old := slices.Clone(u.idle[:n])
	u.idle = slices.Delete(u.idle, 0, n)
	u.mu.Unlock()
	for _, c := range old {
		c.Close()
	}
}

// Same reports whether another upstream has the same address and timeout.
func (u *Upstream) Same(other *Upstream) bool {
	return u.base.String() == other.base.String() && u.timeout == other.timeout
}

// Retire closes the idle connections, and others when they are returned.
func (u *Upstream) Retire() {
	u.mu.Lock()
	u.retired = true
	u.mu.Unlock()
	u.CloseIdle(time.Now().Add(time.Hour))
}
