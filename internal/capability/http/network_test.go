package http_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/miekg/dns"

	httpcap "github.com/toolsrv/toolsrv/internal/capability/http"
	"github.com/toolsrv/toolsrv/internal/testkit"
)

// A resolved network uses a real DNS server, and dials as network does.
type resolved struct {
	network
	server string
}

func (n *resolved) Lookup(ctx context.Context, name string) ([]netip.Addr, error) {
	r := net.Resolver{PreferGo: true, Dial: func(ctx context.Context, protocol, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, protocol, n.server)
	}}
	return r.LookupNetIP(ctx, "ip", name)
}

// zone has the answers for names, as lines that are records in the form of a zone file. Each query for a name is answered with the next of its
// lines. Once all were used, the last one is used again. A line that is the name of an error is answered with that error.
type zone struct {
	mu      sync.Mutex
	records map[string][]string
	asked   []string
}

func (z *zone) ServeDNS(w dns.ResponseWriter, r *dns.Msg) {
	z.mu.Lock()
	defer z.mu.Unlock()
	q := r.Question[0]
	m := new(dns.Msg).SetReply(r)
	m.Authoritative, m.RecursionAvailable = true, true
	key := q.Name + " " + dns.TypeToString[q.Qtype]
	z.asked = append(z.asked, key)
	lines, known := z.records[key]
	switch {
	case !known && z.records[q.Name+" A"] == nil && z.records[q.Name+" AAAA"] == nil:
		m.Rcode = dns.RcodeNameError
	case known:
		if len(lines) > 1 {
			z.records[key] = lines[1:]
		}
		for line := range strings.SplitSeq(lines[0], "\n") {
			if code, ok := dns.StringToRcode[line]; ok {
				m.Rcode = code
				continue
			}
			rr, err := dns.NewRR(line)
			if err != nil {
				panic(err)
			}
			m.Answer = append(m.Answer, rr)
		}
	}
	if w.RemoteAddr().Network() == "udp" {
		m.Truncate(dns.MinMsgSize) // the resolver then asks again over TCP
	}
	_ = w.WriteMsg(m)
}

func (z *zone) lookedUp() []string {
	z.mu.Lock()
	defer z.mu.Unlock()
	return slices.Clone(z.asked)
}

// serveDNS returns the address of a DNS server, over UDP and TCP.
func serveDNS(t *testing.T, z *zone) string {
	t.Helper()
	var packets net.PacketConn
	var streams net.Listener
	for streams == nil { // a port that is free for UDP may be taken for TCP
		p, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		if streams, err = net.Listen("tcp", p.LocalAddr().String()); err != nil {
			defer p.Close() // not yet, so that another port is tried
		}
		packets = p
	}
	var all sync.WaitGroup
	t.Cleanup(all.Wait)
	for _, s := range []*dns.Server{{PacketConn: packets, Handler: z}, {Listener: streams, Handler: z}} {
		started := make(chan bool)
		s.NotifyStartedFunc = func() { close(started) }
		all.Go(func() { _ = s.ActivateAndServe() })
		<-started
		t.Cleanup(func() { _ = s.Shutdown() })
	}
	return packets.LocalAddr().String()
}

// TestDNS uses a real DNS server that answers for a granted name. An allowed address is dialled, and it is the one that was checked.
// Proves: Requests go only where they were granted
func TestDNS(t *testing.T) {
	t.Parallel()
	many := func(n int) string {
		var lines []string
		for i := range n {
			lines = append(lines, fmt.Sprintf("api.example. 0 A 93.184.%d.%d", i/200, 1+i%200))
		}
		return strings.Join(lines, "\n")
	}
	for _, test := range []struct {
		name  string
		a     []string // answers to queries for A, one after the other
		aaaa  []string
		code  string
		dials []string
	}{
		{"public", []string{"api.example. 0 A 93.184.215.14"}, nil, "connect", []string{"93.184.215.14:80"}},
		{"IPv6 only", nil, []string{"api.example. 0 AAAA 2606:2800:21f::1"}, "connect", []string{"[2606:2800:21f::1]:80"}},
		{"loopback", []string{"api.example. 0 A 127.0.0.1"}, nil, "not_granted", nil},
		{"loopback of IPv6", nil, []string{"api.example. 0 AAAA ::1"}, "not_granted", nil},
		{"private", []string{"api.example. 0 A 10.1.2.3"}, nil, "not_granted", nil},
		{"metadata", []string{"api.example. 0 A 169.254.169.254"}, nil, "not_granted", nil},
		{"Azure's metadata", []string{"api.example. 0 A 168.63.129.16"}, nil, "not_granted", nil},
		{"carrier-grade NAT", []string{"api.example. 0 A 100.100.100.200"}, nil, "not_granted", nil},
		{"this network's", []string{"api.example. 0 A 0.0.0.0"}, nil, "not_granted", nil},
		{"multicast", []string{"api.example. 0 A 224.0.0.1"}, nil, "not_granted", nil},
		{"broadcast", []string{"api.example. 0 A 255.255.255.255"}, nil, "not_granted", nil},
		{"unique local", nil, []string{"api.example. 0 AAAA fd00:ec2::254"}, "not_granted", nil},
		{"link-local of IPv6", nil, []string{"api.example. 0 AAAA fe80::1"}, "not_granted", nil},
		{"mapped", nil, []string{"api.example. 0 AAAA ::ffff:10.0.0.1"}, "not_granted", nil},
		{"mapped metadata", nil, []string{"api.example. 0 AAAA ::ffff:169.254.169.254"}, "not_granted", nil},
		{"compatible", nil, []string{"api.example. 0 AAAA ::10.0.0.1"}, "not_granted", nil},
		{"NAT64", nil, []string{"api.example. 0 AAAA 64:ff9b::a00:1"}, "not_granted", nil},
		{"NAT64 of a network", nil, []string{"api.example. 0 AAAA 64:ff9b:1::1"}, "not_granted", nil},
		{"6to4", nil, []string{"api.example. 0 AAAA 2002:a00:1::1"}, "not_granted", nil},
		{"Teredo", nil, []string{"api.example. 0 AAAA 2001::a00:1"}, "not_granted", nil},
		{"public, then private", []string{"api.example. 0 A 93.184.215.14\napi.example. 0 A 10.0.0.1"}, nil, "not_granted", nil},
		{"private, then public", []string{"api.example. 0 A 10.0.0.1\napi.example. 0 A 93.184.215.14"}, nil, "not_granted", nil},
		{"public, and loopback of IPv6", []string{"api.example. 0 A 93.184.215.14"}, []string{"api.example. 0 AAAA ::1"}, "not_granted", nil},
		{"a chain of names to a public address", []string{"api.example. 0 CNAME b.example.\nb.example. 0 CNAME c.example.\nc.example. 0 A 93.184.215.14"}, nil, "connect", []string{"93.184.215.14:80"}},
		{"a chain of names to a private address", []string{"api.example. 0 CNAME b.example.\nb.example. 0 CNAME localhost.\nlocalhost. 0 A 127.0.0.1"}, nil, "not_granted", nil},
		{"a chain of names to metadata", []string{"api.example. 0 CNAME metadata.google.internal.\nmetadata.google.internal. 0 A 169.254.169.254"}, nil, "not_granted", nil},
		{"a chain of names without end", []string{"api.example. 0 CNAME api.example."}, nil, "dns", nil},
		{"another name's address", []string{"other.example. 0 A 93.184.215.14"}, []string{"other.example. 0 AAAA ::1"}, "", nil},
		{"no address", []string{"NOERROR"}, nil, "dns", nil},
		{"no such name", []string{"NXDOMAIN"}, []string{"NXDOMAIN"}, "dns", nil},
		{"a failing server", []string{"SERVFAIL"}, []string{"SERVFAIL"}, "dns", nil},
		{"a refusing server", []string{"REFUSED"}, []string{"REFUSED"}, "dns", nil},
		{"100 addresses", []string{many(100)}, nil, "connect", slices.Repeat([]string{""}, 8)},
		{"101 addresses", []string{many(101)}, nil, "dns", nil},
		{"99 public addresses and a private one", []string{many(99) + "\napi.example. 0 A 192.168.0.1"}, nil, "not_granted", nil},
		{"rebound from public to private", []string{"api.example. 0 A 93.184.215.14", "api.example. 0 A 127.0.0.1"}, nil, "connect", []string{"93.184.215.14:80"}},
		{"rebound from private to public", []string{"api.example. 0 A 127.0.0.1", "api.example. 0 A 93.184.215.14"}, nil, "not_granted", nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			z := &zone{records: map[string][]string{}}
			if test.a != nil {
				z.records["api.example. A"] = test.a
			}
			if test.aaaa != nil {
				z.records["api.example. AAAA"] = test.aaaa
			}
			n := &resolved{server: serveDNS(t, z)}
			g := grant(t, spec{Rule: httpcap.Rule{Granted: []string{"http://api.example"}, Private: []netip.Prefix{}}, network: n})
			in := get(t, g, "http://api.example/")
			if len(test.dials) == 8 && len(n.dialed) == 8 {
				n.dialed = test.dials
			}
			if test.code != "" && in.Code != test.code || !slices.Equal(n.dialed, test.dials) {
				t.Errorf("got %+v, dials %v; want %s, %v", in, n.dialed, test.code, test.dials)
			}
			for _, address := range []string{"10.1.2.3", "93.184", "127.0.0.1:", n.server} {
				if strings.Contains(in.Message, address) {
					t.Errorf("the message contains an address: %s", in.Message)
				}
			}
			for _, asked := range z.lookedUp() {
				if !strings.HasPrefix(asked, "api.example. ") && !strings.HasPrefix(asked, "b.example") && !strings.HasPrefix(asked, "localhost") {
					t.Errorf("another name was looked up: %s", asked)
				}
			}
		})
	}
}

// TestRebinding has a name that is granted with its private address. Its address changes between two requests, and between lookup and dial.
// Proves: Requests go only where they were granted
func TestRebinding(t *testing.T) {
	t.Parallel()
	url := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "granted") })
	port := url[strings.LastIndexByte(url, ':'):]
	z := &zone{records: map[string][]string{"api.example. A": {"api.example. 0 A 127.0.0.1", "api.example. 0 A 127.0.0.2", "api.example. 0 A 10.0.0.1"}}}
	n := &resolved{server: serveDNS(t, z)}
	g := grant(t, spec{Rule: httpcap.Rule{Granted: []string{"http://api.example" + port}, Private: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}, network: n})
	c := begin(t, g)
	defer c.ABI.End()
	for range 3 { // over the existing connection
		if in := c.send(t, outgoing{URL: "http://api.example" + port + "/"}); in.Body != "granted" {
			t.Errorf("got %+v", in)
		}
	}
	if asked := z.lookedUp(); len(asked) != 2 {
		t.Errorf("looked up %v, want one look-up of both kinds", asked)
	}
	other := grant(t, spec{Rule: httpcap.Rule{Granted: []string{"http://api.example" + port}, Private: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}}, network: n})
	for range 2 {
		if in := get(t, other, "http://api.example"+port+"/"); in.Code != "not_granted" || len(n.dialed) > 0 {
			t.Errorf("got %+v, dials %v", in, n.dialed)
		}
	}
}

// TestNear requests the machine's own addresses, and those of its networks, by number and by name.
// Proves: Requests go only where they were granted
func TestNear(t *testing.T) {
	t.Parallel()
	prefixes := func(list ...string) (all []netip.Prefix) {
		all = []netip.Prefix{}
		for _, s := range list {
			all = append(all, netip.MustParsePrefix(s))
		}
		return all
	}
	own := prefixes("127.0.0.1/8", "9.9.9.9/32", "8.8.4.4/24", "45.0.0.1/8", "2a00:1450::5/64", "2606:2800::1/32")
	for _, test := range []struct {
		host    string // an address, or the addresses of a name, separated by spaces
		private []netip.Prefix
		code    string
	}{
		{"9.9.9.9", prefixes(), "not_granted"},
		{"9.9.9.9", prefixes("9.9.9.9/32"), "connect"},
		{"9.9.9.9", prefixes("9.9.9.8/32", "8.8.4.4/32"), "not_granted"},
		{"9.9.9.8", prefixes(), "connect"},
		{"8.8.4.4", prefixes(), "not_granted"},
		{"8.8.4.5", prefixes(), "not_granted"},
		{"8.8.4.5", prefixes("8.8.4.0/24"), "connect"},
		{"8.8.5.5", prefixes(), "connect"},
		{"45.0.0.1", prefixes(), "not_granted"},
		{"45.0.0.2", prefixes(), "connect"},
		{"[2a00:1450::5]", prefixes(), "not_granted"},
		{"[2a00:1450::6]", prefixes(), "not_granted"},
		{"[2a00:1450::6]", prefixes("2a00:1450::/64"), "connect"},
		{"[2a00:1450:1::6]", prefixes(), "connect"},
		{"[2606:2800::1]", prefixes(), "not_granted"},
		{"[2606:2800::2]", prefixes(), "connect"},
		{"93.184.215.14 9.9.9.9", prefixes(), "not_granted"},
		{"93.184.215.14 2a00:1450::7", prefixes(), "not_granted"},
		{"::ffff:9.9.9.9 1.1.1.1", prefixes(), "not_granted"},
		{"93.184.215.14 1.1.1.1", prefixes(), "connect"},
	} {
		n := &network{own: own, names: func(string) (found []netip.Addr, err error) {
			for a := range strings.FieldsSeq(test.host) {
				found = append(found, netip.MustParseAddr(a))
			}
			return found, nil
		}}
		url := "http://" + test.host + "/"
		if strings.Contains(test.host, " ") {
			url = "http://api.example/"
		}
		in := get(t, grant(t, spec{Rule: httpcap.Rule{Granted: []string{"http://*"}, Private: test.private}, network: n}), url)
		if in.Code != test.code || (len(n.dialed) > 0) != (test.code == "connect") {
			t.Errorf("%s with private %v: got %+v, dials %v; want %s", test.host, test.private, in, n.dialed, test.code)
		}
		if strings.Contains(test.host, " ") && strings.Contains(in.Message, "9.9.9.9") {
			t.Errorf("the message contains an address: %s", in.Message)
		}
	}
	n := &network{blind: errors.New("no list")}
	g := grant(t, spec{Rule: httpcap.Rule{Granted: []string{"http://*"}, Private: prefixes("1.1.1.1/32")}, network: n})
	if in := get(t, g, "http://8.8.8.8/"); in.Code != "unavailable" || len(n.dialed) > 0 {
		t.Errorf("without a list of interfaces: got %+v, dials %v", in, n.dialed)
	}
	if in := get(t, g, "http://1.1.1.1/"); in.Code != "connect" {
		t.Errorf("without a list of interfaces, an address that private names: got %+v", in)
	}
}

// TestLooks checks that the list of interfaces is read at most once a second, and that a new address is seen after that.
// Proves: Requests go only where they were granted
func TestLooks(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		n := &network{}
		g := grant(t, spec{Rule: httpcap.Rule{Granted: []string{"http://*"}, Private: []netip.Prefix{}}, network: n})
		for range 50 {
			if in := get(t, g, "http://9.9.9.9/"); in.Code != "connect" {
				t.Fatalf("got %+v", in)
			}
		}
		n.own = []netip.Prefix{netip.MustParsePrefix("9.9.9.9/32")}
		time.Sleep(time.Second)
		if in := get(t, g, "http://9.9.9.9/"); in.Code != "not_granted" || n.looks != 2 {
			t.Errorf("after a second: got %+v, and %d looks; want 2", in, n.looks)
		}
	})
}

// TestInterfaces checks that the system's list has at least loopback.
// Proves: Requests go only where they were granted
func TestInterfaces(t *testing.T) {
	t.Parallel()
	g, err := httpcap.New([]string{"http://*"}, []httpcap.Rule{{Granted: []string{"http://*"}}}, httpcap.Options{})
	if err != nil {
		t.Fatal(err)
	}
	list, err := net.InterfaceAddrs()
	if err != nil {
		t.Skip(err)
	}
	for _, one := range list {
		a, err := netip.ParsePrefix(one.String())
		if err != nil || a.Addr().Zone() != "" {
			continue
		}
		host := a.Addr().String()
		if a.Addr().Is6() {
			host = "[" + host + "]"
		}
		if in := get(t, g, "http://"+host+"/"); in.Code != "not_granted" {
			t.Errorf("%s: got %+v", one, in)
		}
	}
}

// TestHostsFile looks up localhost, which only the hosts file has. A name that is neither there nor in DNS is not found.
// Proves: Requests go only where they were granted
func TestHostsFile(t *testing.T) {
	t.Parallel()
	hosts, err := os.ReadFile("/etc/hosts")
	if err != nil || !regexp.MustCompile(`(?m)^127\.0\.0\.1\s(.*\s)?localhost(\s|$)`).Match(hosts) {
		t.Skip("/etc/hosts does not have localhost")
	}
	url := serve(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Host) })
	local := "http://localhost" + url[strings.LastIndexByte(url, ':'):]
	for _, private := range []string{"127.0.0.0/8", "10.0.0.0/8"} {
		rule := httpcap.Rule{Granted: []string{local}, Private: []netip.Prefix{netip.MustParsePrefix(private), netip.MustParsePrefix("::1/128")}}
		g, err := httpcap.New(rule.Granted, []httpcap.Rule{rule}, httpcap.Options{})
		if err != nil {
			t.Fatal(err)
		}
		in := get(t, g, local)
		if granted := private == "127.0.0.0/8"; granted && "http://"+in.Body != local || !granted && in.Code != "not_granted" {
			t.Errorf("with %s granted: got %s", private, in.whole)
		}
	}
}

// TestProxy checks that no proxy from the environment is used.
// Proves: Requests go only where they were granted
func TestProxy(t *testing.T) {
	proxy := serve(t, func(_ http.ResponseWriter, r *http.Request) { t.Errorf("the proxy got %s %s", r.Method, r.RequestURI) })
	for _, name := range []string{"HTTP_PROXY", "http_proxy", "HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"} {
		t.Setenv(name, proxy)
	}
	n := &network{}
	g := grant(t, spec{Rule: httpcap.Rule{Granted: []string{"http://a.example", "https://a.example"}}, network: n})
	for _, url := range []string{"http://a.example/", "https://a.example/"} {
		if in := get(t, g, url); in.Code != "connect" {
			t.Errorf("got %+v", in)
		}
	}
	if len(n.dialed) != 2 {
		t.Errorf("dialled %v", n.dialed)
	}
}

// authority makes certificates.
type authority struct {
	t    testing.TB
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  string // the file
}

func newAuthority(t testing.TB) *authority {
	a := &authority{t: t}
	c := a.issue(&x509.Certificate{Subject: pkix.Name{CommonName: "test"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	a.cert, _ = x509.ParseCertificate(c.Certificate[0])
	a.key = c.PrivateKey.(*ecdsa.PrivateKey)
	a.pem = testkit.Put(t, t.TempDir(), "ca.pem", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.Certificate[0]}))
	return a
}

// issue signs a certificate. Without other dates it is valid for an hour.
func (a *authority) issue(c *x509.Certificate) tls.Certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	if c.SerialNumber = big.NewInt(1); c.NotAfter.IsZero() {
		c.NotBefore, c.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	}
	parent, signer := a.cert, a.key
	if parent == nil {
		parent, signer = c, key
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, &key.PublicKey, signer)
	if err != nil {
		a.t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// serveTLS returns the port of a server.
func serveTLS(t testing.TB, config *tls.Config, h http.HandlerFunc) string {
	s := httptest.NewUnstartedServer(h)
	s.EnableHTTP2, s.TLS = true, config
	s.Config.ErrorLog = log.New(io.Discard, "", 0)
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.URL[strings.LastIndexByte(s.URL, ':'):]
}

// TestTLS connects to servers with certificates of all kinds. All of them speak HTTP/2, but it is never used.
// Proves: Requests go only where they were granted
func TestTLS(t *testing.T) {
	t.Parallel()
	ca, other := newAuthority(t), newAuthority(t)
	server := func(names ...string) *x509.Certificate {
		return &x509.Certificate{DNSNames: names, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}}
	}
	expired := server("api.example")
	expired.NotBefore, expired.NotAfter = time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour)
	client := server("api.example")
	client.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	byAddress := server()
	byAddress.IPAddresses = []net.IP{net.ParseIP("127.0.0.1")}
	for _, test := range []struct {
		name, host, ca string
		config         *tls.Config
		says           string // what the message says; "" if it works
	}{
		{"our own", "api.example", ca.pem, &tls.Config{Certificates: []tls.Certificate{ca.issue(server("api.example"))}}, ""},
		{"a wildcard", "api.example", ca.pem, &tls.Config{Certificates: []tls.Certificate{ca.issue(server("*.example"))}}, ""},
		{"an address", "127.0.0.1", ca.pem, &tls.Config{Certificates: []tls.Certificate{ca.issue(byAddress)}}, ""},
		{"TLS 1.2", "api.example", ca.pem, &tls.Config{Certificates: []tls.Certificate{ca.issue(server("api.example"))}, MaxVersion: tls.VersionTLS12}, ""},
		{"TLS 1.1", "api.example", ca.pem, &tls.Config{Certificates: []tls.Certificate{ca.issue(server("api.example"))}, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}, "TLS 1.2 or later"},
		{"no authority named", "api.example", "", &tls.Config{Certificates: []tls.Certificate{ca.issue(server("api.example"))}}, "not trusted; the operator can name it in the grant, with ca"},
		{"another authority", "api.example", other.pem, &tls.Config{Certificates: []tls.Certificate{ca.issue(server("api.example"))}}, "not trusted"},
		{"another name", "api.example", ca.pem, &tls.Config{Certificates: []tls.Certificate{ca.issue(server("evil.example"))}}, "other names"},
		{"a name instead of the address", "127.0.0.1", ca.pem, &tls.Config{Certificates: []tls.Certificate{ca.issue(server("api.example"))}}, "other names"},
		{"expired", "api.example", ca.pem, &tls.Config{Certificates: []tls.Certificate{ca.issue(expired)}}, "expired"},
		{"for clients", "api.example", ca.pem, &tls.Config{Certificates: []tls.Certificate{ca.issue(client)}}, "not valid"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			port := serveTLS(t, test.config, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto+" "+r.Host) })
			url := "https://" + test.host + port
			g := grant(t, spec{Rule: httpcap.Rule{Granted: []string{url}, CA: test.ca}, network: here("api.example")})
			in := get(t, g, url+"/")
			if test.says == "" && in.Body != "HTTP/1.1 "+test.host+port || test.says != "" && (in.Code != "tls" || !strings.Contains(in.Message, test.says) || strings.Contains(in.Message, "evil")) {
				t.Errorf("got %+v, want a failure that says %q", in, test.says)
			}
		})
	}
	plain := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("a request has arrived without TLS") })
	url := strings.Replace(plain, "http://", "https://", 1)
	if in := get(t, grant(t, spec{Rule: httpcap.Rule{Granted: []string{url}}}), url); in.Code != "tls" {
		t.Errorf("a server without TLS: got %+v", in)
	}
}

// TestCoalescing has two names with one address and one certificate: each has its own connections and its own Host.
// Proves: Requests go only where they were granted
func TestCoalescing(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	port := serveTLS(t, &tls.Config{Certificates: []tls.Certificate{ca.issue(&x509.Certificate{DNSNames: []string{"a.example", "b.example"}})}},
		func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Alt-Svc", `h2="b.example:443"; persist=1`)
			_, _ = fmt.Fprint(w, r.Host, " ", r.TLS.ServerName, " ", r.RemoteAddr)
		})
	n := here("a.example", "b.example")
	both := grant(t, spec{Rule: httpcap.Rule{Granted: []string{"https://a.example" + port, "https://b.example" + port}, CA: ca.pem}, network: n})
	a, b := strings.Fields(get(t, both, "https://a.example"+port+"/").Body), strings.Fields(get(t, both, "https://b.example"+port+"/").Body)
	if len(a) != 3 || len(b) != 3 || a[0] != "a.example"+port || a[1] != "a.example" || b[1] != "b.example" || a[2] == b[2] {
		t.Errorf("got %v and %v", a, b)
	}
}
