package http_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/miekg/dns"

	"github.com/toolsrv/toolsrv/internal/testkit"
)

// inside is the environment variable of a test in the namespace, with the directory of the server's binary.
const inside = "TOOLSRV_EGRESS_INSIDE"

// TestNamespace builds the server, and runs TestReach in a namespace without any other network.
// Proves: Requests go only where they were granted
func TestNamespace(t *testing.T) {
	if os.Getenv("TOOLSRV_EGRESS") == "" {
		t.Skip("TOOLSRV_EGRESS is not set: make test-egress runs this")
	}
	for _, program := range []string{"unshare", "ip", "mount"} {
		if _, err := exec.LookPath(program); err != nil {
			t.Skipf("there is no %s", program)
		}
	}
	flags := []string{"--net", "--mount", "--"}
	if os.Geteuid() != 0 {
		flags = append([]string{"--map-root-user"}, flags...)
	}
	if out, err := exec.Command("unshare", append(flags, "true")...).CombinedOutput(); err != nil {
		t.Skipf("namespaces are not allowed here: %v: %s", err, out)
	}
	dir := t.TempDir()
	if out, err := exec.Command("go", "build", "-o", filepath.Join(dir, "toolsrv"), "../../cmd/toolsrv").CombinedOutput(); err != nil {
		t.Fatalf("build the server: %v\n%s", err, out)
	}
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "unshare", append(flags, binary, "-test.run=^TestReach$", "-test.v")...)
	cmd.Env = append(os.Environ(), inside+"="+dir)
	out, err := cmd.CombinedOutput()
	if t.Logf("in the namespace:\n%s", out); err != nil || !bytes.Contains(out, []byte("--- PASS: TestReach")) {
		t.Fatalf("TestReach: %v", err)
	}
}

// The addresses other than loopback, each with a server.
var (
	publicAddresses  = []string{"93.184.215.14", "93.184.215.15", "8.8.8.8", "2606:2800:21f:cb07::1", "45.1.2.3"} // reached by a route; no interface has this address
	ownAddresses     = []string{"9.9.9.9/32", "1.0.5.9/24", "45.0.0.1/8", "2a00:1450::5/64"}
	besideAddresses  = []string{"1.0.5.10", "2a00:1450::6"} // other machines of these networks
	specialAddresses = []string{
		"10.0.0.7", "172.16.0.1", "192.168.1.1", "100.64.0.1", "100.100.100.200", "169.254.1.1", "169.254.169.254", "168.63.129.16", "192.0.0.192", "192.0.2.1",
		"192.88.99.1", "198.18.0.1", "198.51.100.1", "203.0.113.1", "240.0.0.1", "fd00::7", "fd00:ec2::254", "fec0::1", "2001::1", "2001:db8::1", "2002:a00:7::1", "64:ff9b::a00:7", "64:ff9b::a9fe:a9fe", "4000::1",
	}
)

// names has the addresses of names below site.example. If addresses are separated by slashes, each query gets the next one.
var names = map[string]string{
	"api": "93.184.215.14", "other": "93.184.215.15", "six": "2606:2800:21f:cb07::1", "both": "93.184.215.14 2606:2800:21f:cb07::1",
	"private": "10.0.0.7", "meta": "169.254.169.254", "azure": "168.63.129.16", "cgnat": "100.64.0.1", "alibaba": "100.100.100.200", "loop": "127.0.0.1", "loop6": "::1", "zero": "0.0.0.0", "zero6": "::",
	"ula": "fd00::7", "meta6": "fd00:ec2::254", "site": "fec0::1", "mapped": "::ffff:10.0.0.7", "mappedloop": "::ffff:127.0.0.1", "nat64": "64:ff9b::a00:7", "nat64meta": "64:ff9b::a9fe:a9fe",
	"6to4": "2002:a00:7::1", "teredo": "2001::1", "docs": "2001:db8::1", "unassigned": "4000::1", "reserved": "240.0.0.1", "bench": "198.18.0.1", "compat": "::10.0.0.7", "linklocal6": "fe80::1",
	"own": "9.9.9.9", "own6": "2a00:1450::5", "beside": "1.0.5.10", "beside6": "2a00:1450::6", "mixedown": "93.184.215.14 9.9.9.9", "mixedbeside": "93.184.215.14 2a00:1450::6",
	"mixed": "93.184.215.14 10.0.0.7", "mixed6": "93.184.215.14 ::1", "rebind": "93.184.215.14/127.0.0.1", "rebound": "127.0.0.1/93.184.215.14",
	"chain": "=api", "chaintoprivate": "=private", "chaintometa": "=meta", "chaintwice": "=chaintoprivate",
}

// A world has the servers in the namespace, and records which were hit.
type world struct {
	mu      sync.Mutex
	hits    []string // addresses of servers, with their ports
	lookups []string
	asked   map[string]int
}

func (w *world) hit(server string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.hits = append(w.hits, server)
}

// took returns the servers that were hit since its last call.
func (w *world) took() (hits, lookups []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	hits, lookups, w.hits, w.lookups = w.hits, w.lookups, nil, nil
	return hits, lookups
}

// ServeDNS answers for names.
func (w *world) ServeDNS(to dns.ResponseWriter, r *dns.Msg) {
	q := r.Question[0]
	m := new(dns.Msg).SetReply(r)
	m.Authoritative, m.RecursionAvailable = true, true
	label, ok := strings.CutSuffix(strings.ToLower(q.Name), ".site.example.")
	w.mu.Lock()
	w.lookups = append(w.lookups, q.Name)
	asked := w.asked[q.String()]
	w.asked[q.String()]++
	w.mu.Unlock()
	switch {
	case q.Name == "api.example.com.", q.Name == "intranet.":
		m.Answer = append(m.Answer, record(q.Name, "93.184.215.14", q.Qtype)...)
	case strings.HasSuffix(q.Name, ".search.example."): // the system's search domain, in which every name exists
		m.Answer = append(m.Answer, record(q.Name, "93.184.215.15", q.Qtype)...)
	case !ok || names[label] == "":
		m.Rcode = dns.RcodeNameError
	default:
		owner := q.Name
		for strings.HasPrefix(names[label], "=") {
			label = names[label][1:]
			target := label + ".site.example."
			rr, _ := dns.NewRR(owner + " 0 CNAME " + target)
			m.Answer, owner = append(m.Answer, rr), target
		}
		turns := strings.Split(names[label], "/")
		for address := range strings.FieldsSeq(turns[min(asked, len(turns)-1)]) {
			m.Answer = append(m.Answer, record(owner, address, q.Qtype)...)
		}
	}
	_ = to.WriteMsg(m)
}

func record(owner, address string, kind uint16) []dns.RR {
	a := netip.MustParseAddr(address)
	switch {
	case a.Is4() && kind == dns.TypeA:
		return []dns.RR{&dns.A{Hdr: dns.RR_Header{Name: owner, Rrtype: kind, Class: dns.ClassINET}, A: net.IP(a.AsSlice())}}
	case a.Is6() && kind == dns.TypeAAAA:
		b := a.As16()
		return []dns.RR{&dns.AAAA{Hdr: dns.RR_Header{Name: owner, Rrtype: kind, Class: dns.ClassINET}, AAAA: net.IP(b[:])}}
	}
	return nil
}

// build gives the interface its addresses, starts the servers, and has the system ask our DNS server.
func build(t *testing.T, dir string) *world {
	t.Helper()
	command := func(name string, args ...string) {
		t.Helper()
		if out, err := exec.Command(name, args...).CombinedOutput(); err != nil {
			t.Fatalf("%s %s: %v: %s", name, strings.Join(args, " "), err, out)
		}
	}
	command("ip", "link", "set", "lo", "up")
	w := &world{asked: map[string]int{}}
	for _, a := range slices.Concat(specialAddresses, ownAddresses) {
		p, err := netip.ParsePrefix(a)
		if err != nil {
			p, _ = netip.MustParseAddr(a).Prefix(netip.MustParseAddr(a).BitLen())
		}
		if p.Addr().Is6() {
			command("ip", "addr", "add", p.String(), "dev", "lo", "nodad")
		} else {
			command("ip", "addr", "add", p.String(), "dev", "lo")
		}
	}
	// Addresses reached by such a route are served here, but belong to no interface, as if another machine had them.
	for _, a := range slices.Concat(publicAddresses, besideAddresses) {
		command("ip", "route", "replace", "local", a, "dev", "lo")
	}
	addresses := slices.Concat(publicAddresses, specialAddresses, besideAddresses)
	for _, a := range ownAddresses {
		addresses = append(addresses, netip.MustParsePrefix(a).Addr().String())
	}
	// Listening on an IPv6 address that no interface has requires IPV6_FREEBIND.
	listen := net.ListenConfig{Control: func(network, _ string, raw syscall.RawConn) error {
		const freebind = 78
		if network != "tcp6" {
			return nil
		}
		var failed error
		err := raw.Control(func(fd uintptr) { failed = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_IPV6, freebind, 1) })
		return errors.Join(err, failed)
	}}
	for name, content := range map[string]string{
		"resolv.conf":   "nameserver 127.0.0.1\nsearch search.example\noptions ndots:3\n",
		"hosts":         "127.0.0.1 localhost\n::1 localhost\n10.0.0.7 hosts.site.example\n",
		"nsswitch.conf": "hosts: files dns\n",
	} {
		if target := "/etc/" + name; name != "nsswitch.conf" || exists(target) {
			command("mount", "--bind", testkit.Put(t, dir, name, content), target)
		}
	}
	for _, a := range append(addresses, "127.0.0.1", "::1") {
		for _, port := range []string{"80", "443", "8080", "8443"} {
			l, err := listen.Listen(t.Context(), "tcp", net.JoinHostPort(a, port))
			if err != nil {
				t.Fatal(err)
			}
			w.serve(t, l)
		}
	}
	packets, err := net.ListenPacket("udp", "127.0.0.1:53")
	if err != nil {
		t.Fatal(err)
	}
	server := &dns.Server{PacketConn: packets, Handler: w}
	go func() { _ = server.ActivateAndServe() }() // the server ends with the process
	return w
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return !errors.Is(err, os.ErrNotExist)
}

// serve counts connections as hits. A request to /to?place is redirected to that place.
func (w *world) serve(t *testing.T, l net.Listener) {
	s := &http.Server{
		ConnState: func(_ net.Conn, state http.ConnState) {
			if state == http.StateNew {
				w.hit(l.Addr().String())
			}
		},
		Handler: http.HandlerFunc(func(to http.ResponseWriter, r *http.Request) {
			to.Header().Set("Connection", "close") // so that each request is a hit
			if r.URL.Path == "/to" {
				to.Header().Set("Location", r.URL.RawQuery)
				to.WriteHeader(http.StatusFound)
				return
			}
			_, _ = fmt.Fprintln(to, l.Addr())
		}),
		ErrorLog: log.New(io.Discard, "", 0),
	}
	go func() { _ = s.Serve(l) }()
	t.Cleanup(func() { _ = s.Close() })
}
