// Package origin compares the hosts that requests name with patterns, and the origins of web pages with each other.
package origin

import (
	"net/netip"
	"strconv"
	"strings"
)

// maxName is the largest length of a host name in DNS.
const maxName = 253

// A Host is the value of a request's header Host in a form that can be compared.
type Host struct {
	// Name is in lower case and has no dot at its end. An IP address has the form that netip.Addr.String returns, which has no brackets; an IPv4
	// address in IPv6 form becomes an IPv4 address.
	Name string
	// Port is 0 if the header names none.
	Port uint16
}

// ParseHost reads the value of a header Host. It returns false for a value that no browser sends: an address with a zone, a user, or a number
// that some resolvers take for an IPv4 address ("127.1", "0x7f000001").
func ParseHost(s string) (h Host, ok bool) {
	name := s
	if colon := strings.LastIndexByte(s, ':'); colon >= 0 && s[len(s)-1] != ']' {
		name = s[:colon]
		if h.Port, ok = parsePort(s[colon+1:]); !ok {
			return Host{}, false
		}
	}
	if h.Name, ok = parseName(name); !ok {
		return Host{}, false
	}
	return h, true
}

// parsePort reads a port, which may be empty.
func parsePort(s string) (port uint16, ok bool) {
	if s == "" {
		return 0, true
	}
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' { // ParseUint accepts a sign
			return 0, false
		}
	}
	n, err := strconv.ParseUint(s, 10, 16)
	return uint16(n), err == nil
}

// parseName reads a DNS name, an IPv4 address, or an IPv6 address in brackets.
func parseName(s string) (name string, ok bool) {
	if inner, found := strings.CutPrefix(s, "["); found {
		inner, closed := strings.CutSuffix(inner, "]")
		a, err := netip.ParseAddr(inner)
		if !closed || err != nil || !a.Is6() || a.Zone() != "" {
			return "", false
		}
		return a.Unmap().String(), true
	}
	s = strings.TrimSuffix(s, ".")
	if s == "" || len(s) > maxName {
		return "", false
	}
	begin, upper := 0, false // where the current label begins, and whether the name has capitals
	for i := range len(s) {
		switch c := s[i]; {
		case c == '.':
			if i == begin {
				return "", false
			}
			begin = i + 1
		case 'A' <= c && c <= 'Z':
			upper = true
		case 'a' <= c && c <= 'z', '0' <= c && c <= '9', c == '-', c == '_':
		default:
			return "", false
		}
	}
	if begin == len(s) {
		return "", false
	}
	if upper {
		s = strings.ToLower(s)
	}
	if isNumber(s[begin:]) {
		if a, err := netip.ParseAddr(s); err != nil || !a.Is4() {
			return "", false
		}
	}
	return s, true
}

// isNumber reports whether some programs take a name that ends in this label for an IPv4 address. The label must be in lower case.
func isNumber(label string) bool {
	digits := "0123456789"
	if hexadecimal, found := strings.CutPrefix(label, "0x"); found {
		label, digits = hexadecimal, "0123456789abcdef"
	}
	return strings.Trim(label, digits) == ""
}

// IsLoopback reports whether the name always means the machine itself: localhost, the names below it, and the loopback addresses. No name server can
// make it mean another machine.
func (h Host) IsLoopback() bool {
	if h.Name == "localhost" || strings.HasSuffix(h.Name, ".localhost") {
		return true
	}
	if c := h.Name[:min(1, len(h.Name))]; c != "1" && c != ":" { // a name, for which ParseAddr would allocate an error
		return false
	}
	a, err := netip.ParseAddr(h.Name)
	return err == nil && a.IsLoopback()
}

// An Origin is where a web page comes from, in a form that can be compared.
type Origin struct {
	Scheme string // in lower case
	Host          // without a port that is the scheme's default
}

// ParseOrigin reads the value of a header Origin. It returns false for everything but a scheme and a host, and so for "null", which pages without an
// origin send.
func ParseOrigin(s string) (o Origin, ok bool) {
	scheme, host, found := strings.Cut(s, "://")
	if !found || !isScheme(scheme) {
		return Origin{}, false
	}
	h, ok := ParseHost(host)
	if !ok {
		return Origin{}, false
	}
	o = Origin{strings.ToLower(scheme), h}
	if o.Port == defaultPort(o.Scheme) {
		o.Port = 0
	}
	return o, true
}

func isScheme(s string) bool {
	for i := range len(s) {
		switch c := s[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z':
		case i > 0 && ('0' <= c && c <= '9' || c == '+' || c == '-' || c == '.'):
		default:
			return false
		}
	}
	return s != ""
}

// String returns the origin as browsers write it.
func (o Origin) String() string {
	name := o.Name
	if strings.Contains(name, ":") {
		name = "[" + name + "]"
	}
	if o.Port != 0 {
		name += ":" + strconv.Itoa(int(o.Port))
	}
	return o.Scheme + "://" + name
}

// IsOf reports whether a page of the origin that sends a request to h sends it to its own server. Behind a proxy that terminates TLS, a server
// doesn't know its own scheme, so HTTP and HTTPS are treated alike.
func (o Origin) IsOf(h Host) bool {
	port := defaultPort(o.Scheme)
	if port == 0 { // an extension of a browser, or an app
		return false
	}
	return o.Name == h.Name && (o.Port == h.Port || o.Port == 0 && h.Port == port)
}

// defaultPort returns the port that addresses of a scheme leave out, or 0.
func defaultPort(scheme string) uint16 {
	switch scheme {
	case "http":
		return 80
	case "https":
		return 443
	}
	return 0
}
