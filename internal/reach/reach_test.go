package reach_test

import (
	"net/netip"
	"net/url"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/reach"
	"github.com/toolsrv/toolsrv/internal/reach/reachtest"
)

// pattern returns a pattern that must be valid.
func pattern(t testing.TB, s string) reach.Pattern {
	t.Helper()
	p, err := reach.ParsePattern(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// outcome returns the outcome of a request, as testdata/urls.txt calls it.
func outcome(granted reach.Pattern, s string) string {
	target, err := reach.ParseTarget(s)
	if err != nil {
		return "invalid"
	}
	list := []reach.Pattern{granted}
	if !reach.Allowed(list, list, target) {
		return "denied"
	}
	if a, err := netip.ParseAddr(target.Host); err == nil {
		if _, _, special := reach.Special(a); special {
			return "special"
		}
	}
	return "allowed"
}

// Proves: Requests go only where they were granted
func TestURLs(t *testing.T) {
	t.Parallel()
	cases := reachtest.URLs(t)
	if len(cases) < 700 {
		t.Errorf("there are %d URLs, want more than 700", len(cases))
	}
	for _, c := range cases {
		p := pattern(t, c.Grant)
		if got := outcome(p, c.URL); got != c.Outcome {
			t.Errorf("%s: %q with the grant %s is %s, want %s", c.Where, c.URL, c.Grant, got, c.Outcome)
		}
		target, err := reach.ParseTarget(c.URL)
		if err != nil {
			if hidden := strings.TrimSpace(c.URL); len(hidden) > 12 && strings.Contains(err.Error(), hidden) {
				t.Errorf("the error repeats the URL: %v", err)
			}
			continue
		}
		again, err := reach.ParseTarget(target.String())
		if err != nil || again != target {
			t.Errorf("%q is written as %q, which is read as %+v, %v", c.URL, target, again, err)
		}
		u, err := url.Parse(target.String())
		if err != nil || u.Host != strings.TrimSuffix(u.Host, ":") || u.EscapedPath() != target.Path || u.RawQuery != target.Query {
			t.Errorf("%q is written as %q, which net/url reads as %+v, %v", c.URL, target, u, err)
		}
	}
}

// TestAllowed checks that a request has to be both needed and granted.
// Proves: Requests go only where they were granted
func TestAllowed(t *testing.T) {
	t.Parallel()
	a, b := []reach.Pattern{pattern(t, "https://a.example")}, []reach.Pattern{pattern(t, "https://b.example"), pattern(t, "https://a.example/x/")}
	for _, test := range []struct {
		url             string
		needed, granted []reach.Pattern
		want            bool
	}{
		{"https://a.example/x/", a, b, true},
		{"https://a.example/x/", b, a, true},
		{"https://a.example/y", a, b, false},
		{"https://b.example/", a, b, false},
		{"https://b.example/", b, a, false},
		{"https://a.example/", a, nil, false},
		{"https://a.example/", nil, a, false},
		{"https://a.example/", nil, nil, false},
		{"https://a.example/", make([]reach.Pattern, 1), make([]reach.Pattern, 1), false},
	} {
		target, err := reach.ParseTarget(test.url)
		if err != nil {
			t.Fatal(err)
		}
		if got := reach.Allowed(test.needed, test.granted, target); got != test.want {
			t.Errorf("%s needed by %v and granted by %v: got %t", test.url, test.needed, test.granted, got)
		}
	}
	if reach.Allowed(make([]reach.Pattern, 1), make([]reach.Pattern, 1), reach.Target{}) {
		t.Error("the zero Target is allowed by the zero Pattern")
	}
}

func TestParsePattern(t *testing.T) {
	t.Parallel()
	for _, test := range []struct{ pattern, want string }{ // want is the URL as it is written, or a part of the error
		{"https://api.example.com", "https://api.example.com"},
		{"https://api.example.com/", "https://api.example.com"},
		{"HTTPS://API.Example.com:443/V2", "https://api.example.com/V2"},
		{"http://10.0.0.7:8080", "http://10.0.0.7:8080"},
		{"http://[FD00:0::7]/x/", "http://[fd00::7]/x/"},
		{"https://*.example.com", "https://*.example.com"},
		{"https://*", "https://*"},
		{"http://*:8080/api/", "http://*:8080/api/"},
		{"https://*.com", "! a name that has a dot"},
		{"https://*example.com", "! host name is not valid"},
		{"https://a.*.com", "! host name is not valid"},
		{"https://**.example.com", "! its host name is not valid"},
		{"https://*.*.com", "! host name is not valid"},
		{"https://*.1.2.3.4", "! ends in a number"},
		{"api.example.com", "! https:// or http://"},
		{"*", "! https:// or http://"},
		{"*://example.com", "! https:// or http://"},
		{"https://example.com:*", "! port is not a number"},
		{"https://example.com?x", "! no slash"},
		{"https://example.com/?x", "! no '?'"},
		{"https://example.com/#x", "! no '#'"},
		{"https://example.com/*", "! no '*'"},
		{"https://example.com/%41", "! no '%'"},
		{"https://example.com/a;b", "! no ';'"},
		{"https://example.com/\u202e", `! no '\u202e'`},
		{"https://example.com/\xe2\x80", "! no '\ufffd'"},
		{"https://example.com/a/../b", "! segment"},
		{"https://example.com//", "! two slashes"},
		{"https://example.com/a//", "! two slashes"},
		{"https://user@example.com/", "! names a user"},
		{"https://exämple.com/", "! host name is not valid"},
		{"https://example.com/" + strings.Repeat("a", reach.MaxURL), "! limit"},
		{"", "! https:// or http://"},
	} {
		p, err := reach.ParsePattern(test.pattern)
		if says, fails := strings.CutPrefix(test.want, "! "); fails {
			if err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%.80q: got %v, %v; want an error with %q", test.pattern, p, err, says)
			}
			continue
		}
		if err != nil || p.String() != test.want {
			t.Errorf("%q: got %q, %v; want %q", test.pattern, p, err, test.want)
		} else if again := pattern(t, p.String()); again != p {
			t.Errorf("%q is read again as %q", p, again)
		}
	}
}

func TestPatternsCompared(t *testing.T) {
	t.Parallel()
	const within, around, cross, apart = "within", "around", "overlaps", "apart"
	for _, test := range []struct{ p, q, want string }{
		{"https://a.example", "https://a.example", within + " " + around},
		{"https://a.example/x", "https://a.example", within},
		{"https://a.example/x/", "https://a.example/x", within},
		{"https://a.example/xy", "https://a.example/x", apart},
		{"https://a.example/x", "https://a.example/y", apart},
		{"https://b.a.example", "https://*.a.example", within},
		{"https://*.b.a.example", "https://*.a.example", within},
		{"https://a.example", "https://*.a.example", apart},
		{"https://a.example", "https://*", within},
		{"https://*.a.example", "https://*", within},
		{"https://*", "https://*", within + " " + around},
		{"https://*.a.example/x/", "https://b.a.example", cross},
		{"https://*/x/", "https://b.a.example", cross},
		{"http://a.example", "https://a.example", apart},
		{"https://a.example:444", "https://a.example", apart},
		{"https://a.example:444", "https://*", apart},
		{"http://10.0.0.1", "http://*", within},
	} {
		p, q := pattern(t, test.p), pattern(t, test.q)
		var got []string
		if p.Within(q) {
			got = append(got, within)
		}
		if q.Within(p) {
			got = append(got, around)
		}
		if got == nil {
			got = []string{map[bool]string{true: cross, false: apart}[p.Overlaps(q)]}
		} else if !p.Overlaps(q) || !q.Overlaps(p) {
			t.Errorf("one of %s and %s is within the other, but they don't overlap", p, q)
		}
		if got := strings.Join(got, " "); got != test.want {
			t.Errorf("%s and %s: got %q, want %q", p, q, got, test.want)
		}
	}
}

// TestSpecial tries the first and the last address of each range, and the addresses just outside it. The test has its own list of ranges.
// Proves: Requests go only where they were granted
func TestSpecial(t *testing.T) {
	t.Parallel()
	for line := range strings.Lines(`
0.0.0.0 0.255.255.255 | 10.0.0.0 10.255.255.255 | 100.64.0.0 100.127.255.255 | 127.0.0.0 127.255.255.255 | 169.254.0.0 169.254.255.255
172.16.0.0 172.31.255.255 | 192.0.0.0 192.0.0.255 | 192.0.2.0 192.0.2.255 | 192.168.0.0 192.168.255.255 | 198.18.0.0 198.19.255.255
192.31.196.0 192.31.196.255 | 192.52.193.0 192.52.193.255 | 192.88.99.0 192.88.99.255 | 192.175.48.0 192.175.48.255
198.51.100.0 198.51.100.255 | 203.0.113.0 203.0.113.255 | 168.63.129.16 168.63.129.16
2001:: 2001:1ff:ffff:ffff:ffff:ffff:ffff:ffff | 2001:db8:: 2001:db8:ffff:ffff:ffff:ffff:ffff:ffff
2002:: 2002:ffff:ffff:ffff:ffff:ffff:ffff:ffff | 2620:4f:8000:: 2620:4f:8000:ffff:ffff:ffff:ffff:ffff | 3fff:: 3fff:fff:ffff:ffff:ffff:ffff:ffff:ffff`) {
		for pair := range strings.SplitSeq(strings.TrimSpace(line), "|") {
			ends := strings.Fields(pair)
			if len(ends) == 0 {
				continue
			}
			first, last := netip.MustParseAddr(ends[0]), netip.MustParseAddr(ends[1])
			for a, want := range map[netip.Addr]bool{first: true, last: true, first.Prev(): false, last.Next(): false} {
				if !a.IsValid() {
					continue // 0.0.0.0 has none before it
				}
				if kind, within, special := reach.Special(a); special != want || special && !within.Contains(a) {
					t.Errorf("%s: got %q, %s, %t", a, kind, within, special)
				}
			}
		}
	}
	for a, want := range map[string]string{
		"224.0.0.0": "multicast", "239.255.255.255": "multicast", "240.0.0.0": "reserved", "255.255.255.255": "broadcast",
		"::": "unspecified", "::1": "loopback", "::ffff:127.0.0.1": "loopback", "::ffff:10.1.1.1": "private", "::10.1.1.1": "IPv4-compatible",
		"1fff:ffff::": "unassigned", "4000::": "unassigned", "64:ff9b::8.8.8.8": "NAT64", "fe80::1%eth0": "link-local", "fd00:ec2::254": "private (ULA)",
		"ff02::1": "multicast", "fec0::1": "site-local", "100::1": "discard", "2001::1": "Teredo",
	} {
		if kind, _, special := reach.Special(netip.MustParseAddr(a)); !special || kind != want {
			t.Errorf("%s: got %q, %t; want %q", a, kind, special, want)
		}
	}
	if _, _, special := reach.Special(netip.Addr{}); !special {
		t.Error("the zero address is not special")
	}
	if kind, _, special := reach.Special(netip.MustParseAddr("::ffff:8.8.8.8")); special {
		t.Errorf("a public IPv4 address in the form of IPv6 is %s", kind)
	}
}

// Proves: Requests go only where they were granted
func TestNear(t *testing.T) {
	t.Parallel()
	const none, own, network = "", "on the machine that the server runs on", "on a network that the server's machine is in"
	var interfaces []netip.Prefix
	for _, s := range []string{"127.0.0.1/8", "::1/128", "9.9.9.9/32", "8.8.4.4/24", "45.0.0.1/15", "46.1.0.1/16", "2a00:1450::5/64", "2606:2800::1/47", "2607:f8b0:1::1/48", "2400:cb00::7/128"} {
		interfaces = append(interfaces, netip.MustParsePrefix(s))
	}
	for a, want := range map[string]string{
		"9.9.9.9": own, "9.9.9.8": none, "::ffff:9.9.9.9": own,
		"8.8.4.4": own, "8.8.4.0": network, "8.8.4.255": network, "8.8.3.255": none, "8.8.5.0": none, "::ffff:8.8.4.8": network,
		"45.0.0.1": own, "45.0.0.2": none, "45.1.0.1": none, "46.1.255.255": network, "46.2.0.0": none,
		"2a00:1450::5": own, "2a00:1450::5%eth0": own, "2a00:1450::": network, "2a00:1450::ffff:ffff:ffff:ffff": network, "2a00:1450::ff%eth0": network, "2a00:1450:0:1::": none,
		"2606:2800::1": own, "2606:2800::2": none, "2607:f8b0:1:ffff::1": network, "2607:f8b0:2::1": none,
		"2400:cb00::7": own, "2400:cb00::8": none, "1.1.1.1": none,
	} {
		if kind, near := reach.Near(netip.MustParseAddr(a), interfaces); kind != want || near != (want != none) {
			t.Errorf("%s: got %q, %t, want %q", a, kind, near, want)
		}
	}
	if _, near := reach.Near(netip.Addr{}, interfaces); near {
		t.Error("the zero address is near")
	}
}

// TestManyPatterns checks that a long path is read only once, and not for each pattern that it is compared with.
func TestManyPatterns(t *testing.T) {
	var patterns []reach.Pattern
	prefix := "https://a.example"
	for range 100 {
		prefix += "/a"
		p, err := reach.ParsePattern(prefix)
		if err != nil {
			t.Fatal(err)
		}
		patterns = append(patterns, p)
	}
	target, err := reach.ParseTarget(prefix + "/" + strings.Repeat("%C3%A9", 1250) + "%3F")
	if err != nil {
		t.Fatal(err)
	}
	if n := testing.AllocsPerRun(10, func() {
		if reach.Allowed(patterns, patterns, target) {
			t.Error("a path with an escaped question mark is allowed")
		}
	}); n > 10 {
		t.Errorf("%v allocations to compare it with %d patterns", n, len(patterns))
	}
}
