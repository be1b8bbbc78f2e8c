package web

import "net/netip"

// client returns the address of the client, or the zero Addr where it has none.
func (x *Exchange) client() netip.Addr { return addressOf(x.request.RemoteAddr) }

// addressOf returns the address of host:port. One of IPv4 within IPv6 is that of IPv4.
func addressOf(remote string) netip.Addr {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap()
}
