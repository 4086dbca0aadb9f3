package admin

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

func within(networks []netip.Prefix, a netip.Addr) bool {
	return slices.ContainsFunc(networks, func(n netip.Prefix) bool { return n.Contains(a) })
}

// peerOf returns the address of the client. Trusted proxies add the address of their own
// client to X-Forwarded-For, the nearest last. The addresses before the first untrusted one
// are up to the client.
func (s *Server) peerOf(r *http.Request) string {
	peer, ok := addrOf(r.RemoteAddr)
	if !ok { // a command through the socket
		return SocketFile
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) {
		before, ok := addrOf(strings.TrimSpace(hop))
		if !ok || !within(s.o.Proxies, peer) {
			break
		}
		peer = before
	}
	return peer.String()
}

// networkOfPeer returns the network of the client, or an invalid one if it is unknown.
func (s *Server) networkOfPeer(r *http.Request) netip.Prefix {
	a, ok := addrOf(s.peerOf(r))
	if !ok {
		return netip.Prefix{}
	}
	return networkOf(a)
}

// secure reports whether the browser uses TLS, with us or with a trusted proxy.
func (s *Server) secure(r *http.Request) bool {
	peer, ok := addrOf(r.RemoteAddr)
	return s.o.TLS != nil || ok && within(s.o.Proxies, peer) && strings.EqualFold(strings.Join(r.Header.Values("X-Forwarded-Proto"), ","), "https")
}

// addrOf parses an IP address, with a port or without.
func addrOf(s string) (netip.Addr, bool) {
	a, err := netip.ParseAddr(strings.Trim(s, "[]"))
	if err != nil {
		var at netip.AddrPort
		at, err = netip.ParseAddrPort(s)
		a = at.Addr()
	}
	return a.Unmap().WithZone(""), err == nil
}

// networkOf returns the network of one client: an IPv4 address, or the first 64 bits of an
// IPv6 address.
func networkOf(a netip.Addr) netip.Prefix {
	p, _ := a.Prefix(min(a.BitLen(), 64)) // cannot fail: no address has fewer bits
	return p
}
