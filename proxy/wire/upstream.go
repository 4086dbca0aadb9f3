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
	"sync/atomic"
	"time"
)

const (
	// IdleUpstream is how long an unused upstream connection is kept. Many
	// servers close theirs after 60 seconds or more; being the first to do so
	// avoids meeting a closing one.
	IdleUpstream = 30 * time.Second

	// maxIdle bounds the unused connections to one upstream.
	maxIdle = 512
)

// Upstream is one server that requests are forwarded to, with its unused
// connections, newest last: the newest is taken first, so that the others can
// age and go.
type Upstream struct {
	Name    string // what metrics and settings call it
	Host    string // the Host field
	Setting string // where its address is set
	base    *url.URL
	dialer  *dialer
	prefix  string // path before every request path, without a final slash
	tls     *tls.Config
	timeout time.Duration // for connecting, TLS included

	provider bool         // one of providers
	waiting  atomic.Int64 // requests without an answer yet

	mu      sync.Mutex // guards what follows
	idle    []*upstreamConn
	retired bool // connections are no longer kept
}

// upstreamConn is one connection to an upstream. It has one owner at a time.
type upstreamConn struct {
	net.Conn
	of    *Upstream
	sock  socket
	since time.Time // when it became idle

	readBy, writeBy time.Time // the deadlines in force, see renew
}

// NewUpstream returns the upstream with the address base. roots verify it over TLS, and
// timeout bounds connecting.
func NewUpstream(name, base string, roots *tls.Config, timeout time.Duration) (*Upstream, error) {
	u, err := url.Parse(base)
	if err != nil {
		return nil, fmt.Errorf("read upstream address: %w", err)
	}
	up := &Upstream{
		Name:    name,
		Host:    u.Host,
		Setting: "upstream." + name,
		base:    u,
		prefix:  strings.TrimSuffix(u.EscapedPath(), "/"),
		timeout: timeout,

		provider: slices.Contains(providers, u.Hostname()),
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

// take returns a connection: the newest idle one whose peer has neither closed it nor
// sent anything, or a new one. reused tells which.
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

// give returns a connection to the pool; its last answer was read to its end.
func (u *Upstream) give(c *upstreamConn) {
	c.since = time.Now()
	u.mu.Lock()
	full := u.retired || len(u.idle) >= maxIdle
	if !full {
		u.idle = append(u.idle, c)
	}
	u.mu.Unlock()
	if full {
		c.Close()
	}
}

// Idle returns how many unused connections are kept, and how many of them the upstream
// has not closed.
func (u *Upstream) Idle() (kept, usable int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	for _, c := range u.idle {
		if c.sock.quiet() {
			usable++
		}
	}
	return len(u.idle), usable
}

// CloseIdle closes the connections that have been idle since before t.
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

// Same reports whether another upstream is the same server, reached in the same way.
func (u *Upstream) Same(other *Upstream) bool {
	return u.base.String() == other.base.String() && u.timeout == other.timeout
}

// Retire closes the unused connections, now and as they are given back.
func (u *Upstream) Retire() {
	u.mu.Lock()
	u.retired = true
	u.mu.Unlock()
	u.CloseIdle(time.Now().Add(time.Hour))
}
