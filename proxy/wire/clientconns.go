package wire

import (
	"cmp"
	"net"
	"net/netip"
	"slices"
	"sync"
	"time"
)

// timeToSpeak protects a new connection from being closed as idle when file descriptors
// have run out.
const timeToSpeak = time.Second

// ClientConns counts and limits open client connections of all protocols, from accept to
// close.
type ClientConns struct {
	limit int // maximum open connections
	part  int // maximum per client network; 0 means no limit
	room  int // connections that the file descriptors allow

	mu   sync.Mutex // protects the fields below
	open map[*clientConn]struct{}
	from map[netip.Prefix]int
}

// NewClientConns limits the connections open at the same time, in total and per client
// network (0 means no limit). room is how many the file descriptors allow; beyond it,
// new connections replace idle ones.
func NewClientConns(limit, ofOneAddress, room int) *ClientConns {
	return &ClientConns{limit: limit, part: ofOneAddress, room: room}
}

// Count returns the number of open connections.
func (cs *ClientConns) Count() int {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	return len(cs.open)
}

// Reasons for refusing a connection.
const (
	admitted   = ""
	tooMany    = "graphiti-proxy: too many clients are connected; try again, or raise limits.connections"
	tooManyOf  = "graphiti-proxy: too many clients are connected from this address; close some, or raise limits.connections_per_address"
	outOfFiles = "graphiti-proxy: there are no file descriptors left for more clients; try again, or raise the limit of open files"
)

// admit counts a connection, or returns the reason to refuse it. When descriptors run
// short, it closes idle connections.
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
	if c.from.IsValid() {
		cs.from[c.from]++
	}
	c.all = cs
	return admitted
}

// leave removes a closed connection from the count. It is idempotent.
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
}

// MakeRoom closes the connections that have been idle longest, except within
// timeToSpeak of their last activity.
func (cs *ClientConns) MakeRoom() {
	cs.mu.Lock()
	idle := cs.oldestIdleLocked(time.Now().Add(-timeToSpeak))
	cs.mu.Unlock()
	for _, c := range idle {
		c.cut()
	}
}

// oldestIdleLocked returns the oldest eighth of the connections idle since then or
// longer. Freeing many at once spares later connections the search.
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

// Wait waits up to patience for all connections to close, and reports whether they
// did.
func (cs *ClientConns) Wait(patience time.Duration) bool {
	for end := time.Now().Add(patience); cs.Count() > 0; time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}

// BreakAll closes every raw connection. The serving goroutines notice and clean
// up.
func (cs *ClientConns) BreakAll() {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	for c := range cs.open {
		_ = rawConn(c.Conn).Close()
	}
}

// prefixOf returns the network of one client: an IPv4 address, or the first 64 bits of
// an IPv6 address. It is invalid if a is not a TCP address.
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
