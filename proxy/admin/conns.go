package admin

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"time"
)

const (
	// maxConns limits the open connections to twice the number that may serve callers, so
	// that a health check can always close one. The file descriptors that package wire
	// leaves to others suffice for them.
	maxConns = 4 * maxCalls

	// maxStrangers bounds the waiting connections of one address without a credential.
	maxStrangers = 32
)

// conns are the open connections. A connection that serves a caller stays open. Every
// other one waits, for a head or for the next request, and the oldest of them is closed if
// there are too many: idle connections keep no health check out.
type conns struct {
	proxies []netip.Prefix // not bounded by address

	mu   sync.Mutex // protects open and the fields of each conn
	open map[net.Conn]*conn
}

type conn struct {
	all   *conns
	from  netip.Prefix // network of the client; invalid if it is not bounded by address
	since time.Time    // start of the last request, or of the wait for the next
	known bool         // it has served a caller
	busy  bool         // it serves a caller
}

type connKey struct{}

func newConns(trusted []netip.Prefix) *conns {
	return &conns{proxies: trusted, open: make(map[net.Conn]*conn)}
}

// add adds a new connection, and closes a waiting one if there are too many. It is the
// ConnContext of the server.
func (cs *conns) add(ctx context.Context, c net.Conn) context.Context {
	one := &conn{all: cs, since: time.Now()}
	if a, ok := addrOf(c.RemoteAddr().String()); ok && !within(cs.proxies, a) {
		one.from = networkOf(a)
	}
	cs.mu.Lock()
	surplus := cs.surplusLocked(one.from)
	delete(cs.open, surplus)
	cs.open[c] = one
	cs.mu.Unlock()
	if secured, ok := surplus.(*tls.Conn); ok {
		surplus = secured.NetConn() // its own Close waits for the peer
	}
	if surplus != nil {
		_ = surplus.Close()
	}
	return context.WithValue(ctx, connKey{}, one)
}

// surplusLocked returns the connection that makes room for a new one from a network, or
// nil if there is room.
func (cs *conns) surplusLocked(from netip.Prefix) net.Conn {
	var neighbor, stranger, known oldest
	strangers := 0
	for c, one := range cs.open {
		switch {
		case one.busy:
		case one.known:
			known.offer(c, one)
		default:
			stranger.offer(c, one)
			if from.IsValid() && one.from == from {
				strangers++
				neighbor.offer(c, one)
			}
		}
	}
	switch {
	case strangers >= maxStrangers:
		return neighbor.c
	case len(cs.open) < maxConns:
		return nil
	case stranger.c != nil:
		return stranger.c
	}
	return known.c
}

// oldest is the connection with the longest wait among those offered.
type oldest struct {
	c     net.Conn
	since time.Time
}

func (o *oldest) offer(c net.Conn, one *conn) {
	if o.c == nil || one.since.Before(o.since) {
		o.c, o.since = c, one.since
	}
}

// change is the ConnState of the server.
func (cs *conns) change(c net.Conn, state http.ConnState) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	switch one := cs.open[c]; {
	case one == nil:
	case state == http.StateClosed, state == http.StateHijacked:
		delete(cs.open, c)
	default:
		one.since = time.Now()
	}
}

// serveCaller protects the connection of a call from being closed until done is called.
func serveCaller(ctx context.Context) (done func()) {
	one, ok := ctx.Value(connKey{}).(*conn)
	if !ok {
		return func() {}
	}
	set := func(busy bool) {
		one.all.mu.Lock()
		defer one.all.mu.Unlock()
		one.busy, one.known, one.since = busy, true, time.Now()
	}
	set(true)
	return func() { set(false) }
}
