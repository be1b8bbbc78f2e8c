package web

import (
	"net/http"
	"net/netip"
	"slices"
	"strings"
)

// ForwardedFor and Forwarded are the headers in which a proxy can name the client of a request. Many proxies know the first; the second is from RFC
// 7239.
const (
	ForwardedFor = "X-Forwarded-For"
	Forwarded    = "Forwarded"
)

// proxies are the peers that are trusted to name the client. They never change.
type proxies struct {
	trusted []netip.Prefix
	cut     func(header string) (rest string, client netip.Addr) // nil: nobody is trusted
	header  string
}

// newProxies returns false if the header is unknown. An empty one means ForwardedFor.
func newProxies(trusted []netip.Prefix, header string) (p proxies, known bool) {
	p = proxies{trusted: slices.Clone(trusted), header: ForwardedFor}
	cut := cutForwardedFor
	switch header {
	case "", ForwardedFor:
	case Forwarded:
		p.header, cut = Forwarded, cutForwarded
	default:
		return p, false
	}
	if len(trusted) > 0 {
		p.cut = cut
	}
	return p, true
}

// client returns the address of the client. Each proxy adds the address of its own peer at the right. Whatever is to the left of it came with the
// request. So the header is read from the right, as long as a trusted proxy has written the address and it is valid.
func (p *proxies) client(peer netip.Addr, lines []string) netip.Addr {
	for _, line := range slices.Backward(lines) {
		for line != "" {
			if !p.trusts(peer) {
				return peer
			}
			var next netip.Addr
			if line, next = p.cut(line); !next.IsValid() {
				return peer
			}
			peer = next
		}
	}
	return peer
}

func (p *proxies) trusts(a netip.Addr) bool {
	a = a.WithZone("")
	return slices.ContainsFunc(p.trusted, func(r netip.Prefix) bool { return r.Contains(a) })
}

// cutForwardedFor cuts off the last element of a list of addresses.
func cutForwardedFor(line string) (rest string, client netip.Addr) {
	i := strings.LastIndexByte(line, ',')
	return line[:max(i, 0)], hostOf(strings.Trim(line[i+1:], " \t"))
}

// cutForwarded cuts off the last element of a list of parameters, in which the parameter for has an address.
func cutForwarded(line string) (rest string, client netip.Addr) {
	end, quoted := len(line), false
	for end > 0 && (quoted || line[end-1] != ',') {
		end--
		quoted = quoted != (line[end] == '"')
	}
	found := false
	for pair := range strings.SplitSeq(line[end:], ";") {
		name, value, _ := strings.Cut(strings.Trim(pair, " \t"), "=")
		if !strings.EqualFold(name, "for") {
			continue
		}
		if found || quoted {
			return "", netip.Addr{}
		}
		found = true
		if n := len(value); n >= 2 && value[0] == '"' && value[n-1] == '"' {
			value = value[1 : n-1]
		}
		client = hostOf(value)
	}
	return line[:max(end-1, 0)], client
}

// hostOf returns the address in a text with or without a port, or the zero Addr if there is none.
func hostOf(s string) netip.Addr {
	if a, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(s, "["), "]")); err == nil {
		return a.Unmap().WithZone("")
	}
	return addressOf(s)
}

// addressOf returns the address of host:port. IPv4 within IPv6 becomes IPv4.
func addressOf(remote string) netip.Addr {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return netip.Addr{}
	}
	return at.Addr().Unmap()
}

// thisMachine is the address for clients that come over a Unix socket.
var thisMachine = netip.AddrFrom4([4]byte{127, 0, 0, 1})

// Client returns the address of the request's client, or the zero Addr if it has none.
func (a *Access) Client(r *http.Request) netip.Addr {
	peer := addressOf(r.RemoteAddr)
	if !peer.IsValid() && isSocket(r) {
		peer = thisMachine
	}
	if p := &a.proxies; p.cut != nil {
		return p.client(peer, r.Header[p.header])
	}
	return peer
}
