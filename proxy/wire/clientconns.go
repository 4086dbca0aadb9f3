package wire

import (
	"cmp"
	"context"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// timeToSpeak is how long a connection may be silent before it may be closed when file
// descriptors have run out.
const timeToSpeak = time.Second

// ClientConns counts and bounds the open connections of clients, of any protocol. A
// connection counts from when it is accepted until it is closed.
type ClientConns struct {
	limit int // the most at the same time
	part  int // the most of one address; 0: no bound
	room  int // how many there are file descriptors for
	count counter

	mu   sync.Mutex // guards what follows
	open map[*clientConn]struct{}
	from map[netip.Prefix]int
}

// NewClientConns bounds the connections that are open at the same time, and those of
// one address (0: no bound). room is how many there are file descriptors for; beyond
// that, new ones take the place of idle ones.
func NewClientConns(limit, ofOneAddress, room int) *ClientConns {
	return &ClientConns{limit: limit, part: ofOneAddress, room: room}
}

// Count returns how many are open.
func (cs *ClientConns) Count() int {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return len(cs.open)
}

// Why a connection is not served; empty when it is served.
const (
	admitted   = ""
	tooMany    = "graphiti-proxy: too many clients are connected; try again, or raise limits.connections"
	tooManyOf  = "graphiti-proxy: too many clients are connected from this address; close some, or raise limits.connections_per_address"
	outOfFiles = "graphiti-proxy: there are no file descriptors left for more clients; try again, or raise the limit of open files"
)

// admit counts a connection, or says why it is not served. When descriptors run short,
// it closes idle connections.
func (cs *ClientConns) admit(c *clientConn) (why string) {
	var idle []*clientConn
	defer func() {
		for _, c := range idle {
			c.cut()
		}
	}()
	cs.mu.Lock()
	defer cs.mu.Unlock()
	c.from = prefixOf(c.RemoteAddr())
	switch {
	case len(cs.open) >= cs.limit:
		return tooMany
	case cs.part > 0 && c.from.IsValid() && cs.from[c.from] >= cs.part:
		return tooManyOf
	case len(cs.open) >= cs.room:
		if idle = cs.oldestIdleLocked(time.Now()); len(idle) == 0 {
			return outOfFiles
		}
	}
	if cs.open == nil {
		cs.open, cs.from = make(map[*clientConn]struct{}), make(map[netip.Prefix]int)
	}
	cs.open[c] = struct{}{}
	cs.count.add()
	if c.from.IsValid() {
		cs.from[c.from]++
	}
	c.all = cs
	return admitted
}

// leave takes a closed connection out of the count, once.
func (cs *ClientConns) leave(c *clientConn) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if _, ok := cs.open[c]; !ok {
		return
	}
	delete(cs.open, c)
	if c.from.IsValid() {
		if cs.from[c.from]--; cs.from[c.from] == 0 {
			delete(cs.from, c.from)
		}
	}
	cs.count.remove()
}

// MakeRoom closes idle connections, those that have been silent for longest. A new
// connection gets timeToSpeak for its first request.
func (cs *ClientConns) MakeRoom() {
	cs.mu.Lock()
	idle := cs.oldestIdleLocked(time.Now().Add(-timeToSpeak))
	cs.mu.Unlock()
	for _, c := range idle {
		c.cut()
	}
}

// oldestIdleLocked returns the oldest eighth of the connections that have been idle
// since then or longer: as many as keep new connections from searching them all each time.
func (cs *ClientConns) oldestIdleLocked(then time.Time) []*clientConn {
	type silent struct {
		c     *clientConn
		since int64
	}
	var list []silent
	for c := range cs.open {
		if since := c.idleSince.Load(); since > 0 && since <= then.UnixNano() {
			list = append(list, silent{c, since})
		}
	}
	slices.SortFunc(list, func(a, b silent) int { return cmp.Compare(a.since, b.since) })
	out := make([]*clientConn, (len(list)+7)/8)
	for i := range out {
		out[i] = list[i].c
	}
	return out
}

// Wait waits until no connection is open, at most for as long as patience. It reports
// whether that is so.
func (cs *ClientConns) Wait(patience time.Duration) bool {
	ctx, end := context.WithTimeout(context.Background(), patience)
	defer end()
	return cs.count.wait(ctx) == nil
}

// BreakAll breaks every connection. The goroutine that serves one notices, and closes
// it.
func (cs *ClientConns) BreakAll() {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for c := range cs.open {
		_ = rawConn(c.Conn).Close()
	}
}

// prefixOf returns the network that belongs to one client: an IPv4 address, or the
// first 64 bits of an IPv6 address. It is invalid when a is no IP address.
func prefixOf(a net.Addr) netip.Prefix {
	t, ok := a.(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	ip := t.AddrPort().Addr().Unmap().WithZone("")
	bits := 64
	if ip.Is4() {
		bits = 32
	}
	p, _ := ip.Prefix(bits)
	return p
}
