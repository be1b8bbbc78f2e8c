package reach

import "net/netip"

// Special returns the kind of an address outside the public internet, such as "loopback", and its range. An IPv4 address in IPv6 form
// has the IPv4 address's kind.
func Special(a netip.Addr) (kind string, within netip.Prefix, special bool) {
	if a = a.Unmap().WithZone(""); !a.IsValid() {
		return "invalid", netip.Prefix{}, true
	}
	for _, r := range ranges {
		if r.Contains(a) {
			return r.kind, r.Prefix, true
		}
	}
	if a.Is6() && !global6.Contains(a) {
		return "unassigned", netip.PrefixFrom(a, 16).Masked(), true // a range that an operator can grant
	}
	return "", netip.Prefix{}, false
}

// Near returns a description of address a if it belongs to this machine or to a network that the machine is in, and "" otherwise. interfaces are the
// addresses of the machine's interfaces, each with the prefix of its network. A prefix shorter than onLink4 or onLink6 is ignored.
func Near(a netip.Addr, interfaces []netip.Prefix) (kind string, near bool) {
	a = a.Unmap().WithZone("")
	for _, p := range interfaces {
		if p.Addr() == a {
			return "on the machine that the server runs on", true
		}
		least := onLink6
		if p.Addr().Is4() {
			least = onLink4
		}
		near = near || p.Bits() >= least && p.Contains(a)
	}
	if near {
		return "on a network that the server's machine is in", true
	}
	return "", false
}

// The shortest prefixes, in bits, of a real network of machines. A shorter one belongs to a tunnel or is a mistake, and would make toolsrv refuse
// addresses that are far away.
const (
	onLink4 = 16
	onLink6 = 48
)

// global6 is the part of IPv6 that belongs to the public internet. The IPv6 ranges listed below that lie outside global6 are there only for their
// names.
var global6 = netip.MustParsePrefix("2000::/3")

// ranges are those in IANA's registries of special-purpose and multicast addresses, and one address in a public range that a cloud provider uses
// for its own services. The first range that contains an address names it.
var ranges = [...]struct {
	netip.Prefix
	kind string
}{
	{netip.MustParsePrefix("0.0.0.0/8"), "this network's"},
	{netip.MustParsePrefix("10.0.0.0/8"), "private"},
	{netip.MustParsePrefix("100.64.0.0/10"), "shared (carrier-grade NAT)"},
	{netip.MustParsePrefix("127.0.0.0/8"), "loopback"},
	{netip.MustParsePrefix("169.254.0.0/16"), "link-local"},
	{netip.MustParsePrefix("172.16.0.0/12"), "private"},
	{netip.MustParsePrefix("192.0.0.0/24"), "reserved"},
	{netip.MustParsePrefix("192.0.2.0/24"), "documentation"},
	{netip.MustParsePrefix("192.31.196.0/24"), "AS112"},
	{netip.MustParsePrefix("192.52.193.0/24"), "AMT"},
	{netip.MustParsePrefix("192.88.99.0/24"), "6to4 relay"},
	{netip.MustParsePrefix("192.168.0.0/16"), "private"},
	{netip.MustParsePrefix("192.175.48.0/24"), "AS112"},
	{netip.MustParsePrefix("198.18.0.0/15"), "benchmarking"},
	{netip.MustParsePrefix("198.51.100.0/24"), "documentation"},
	{netip.MustParsePrefix("203.0.113.0/24"), "documentation"},
	{netip.MustParsePrefix("224.0.0.0/4"), "multicast"},
	{netip.MustParsePrefix("255.255.255.255/32"), "broadcast"},
	{netip.MustParsePrefix("240.0.0.0/4"), "reserved"},
	{netip.MustParsePrefix("168.63.129.16/32"), "metadata (Azure)"},

	{netip.MustParsePrefix("::/128"), "unspecified"},
	{netip.MustParsePrefix("::1/128"), "loopback"},
	{netip.MustParsePrefix("::/96"), "IPv4-compatible"},
	{netip.MustParsePrefix("::ffff:0:0:0/96"), "IPv4-translated"},
	{netip.MustParsePrefix("64:ff9b::/96"), "NAT64"},
	{netip.MustParsePrefix("64:ff9b:1::/48"), "NAT64"},
	{netip.MustParsePrefix("100::/64"), "discard"},
	{netip.MustParsePrefix("100:0:0:1::/64"), "dummy"},
	{netip.MustParsePrefix("2001::/32"), "Teredo"},
	{netip.MustParsePrefix("2001:2::/48"), "benchmarking"},
	{netip.MustParsePrefix("2001:db8::/32"), "documentation"},
	{netip.MustParsePrefix("2001::/23"), "reserved"},
	{netip.MustParsePrefix("2002::/16"), "6to4"},
	{netip.MustParsePrefix("2620:4f:8000::/48"), "AS112"},
	{netip.MustParsePrefix("3fff::/20"), "documentation"},
	{netip.MustParsePrefix("5f00::/16"), "segment routing"},
	{netip.MustParsePrefix("fc00::/7"), "private (ULA)"},
	{netip.MustParsePrefix("fe80::/10"), "link-local"},
	{netip.MustParsePrefix("fec0::/10"), "site-local"},
	{netip.MustParsePrefix("ff00::/8"), "multicast"},
}
