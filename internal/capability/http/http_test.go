package http_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"math"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	httpcap "github.com/toolsrv/toolsrv/internal/capability/http"
	"github.com/toolsrv/toolsrv/internal/reach/reachtest"
	"github.com/toolsrv/toolsrv/internal/runtime/hostcall"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/hosttest"
	"github.com/toolsrv/toolsrv/runtime/hostabi"
)

func TestMain(m *testing.M) { testkit.Main(m, "capability/egress") }

// A network allows loopback. It refuses to dial anything else, and records it.
type network struct {
	names  func(name string) ([]netip.Addr, error) // nil: every name has a public address
	own    []netip.Prefix
	blind  error // of Interfaces
	mu     sync.Mutex
	looks  int      // calls of Interfaces
	asked  []string // names
	dialed []string // dialled addresses other than loopback
}

const public = "93.184.215.14"

func (n *network) Lookup(_ context.Context, name string) ([]netip.Addr, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.asked = append(n.asked, name); n.names != nil {
		return n.names(name)
	}
	return []netip.Addr{netip.MustParseAddr(public)}, nil
}

func (n *network) Interfaces() ([]netip.Prefix, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.looks++
	return slices.Clone(n.own), n.blind
}

func (n *network) Dial(ctx context.Context, address netip.AddrPort) (net.Conn, error) {
	if address.Addr().IsLoopback() {
		return new(net.Dialer).DialContext(ctx, "tcp", address.String())
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.dialed = append(n.dialed, address.String())
	return nil, syscall.ECONNREFUSED
}

// here is a network on which all names resolve to loopback.
func here(names ...string) *network {
	return &network{names: func(name string) ([]netip.Addr, error) {
		if slices.Contains(names, strings.TrimSuffix(name, ".")) {
			return []netip.Addr{netip.MustParseAddr("127.0.0.1")}, nil
		}
		return nil, &net.DNSError{IsNotFound: true}
	}}
}

// A spec is a grant with one rule.
type spec struct {
	httpcap.Rule
	needed  []string // nil: the same as granted
	network httpcap.Network
	secrets httpcap.Secrets
}

// grant returns a grant with one rule. Loopback may be reached, unless the rule says otherwise.
func grant(t testing.TB, s spec) *httpcap.Permission {
	t.Helper()
	if s.needed == nil {
		s.needed = s.Granted
	}
	if s.Private == nil {
		s.Private = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}
	}
	if s.network == nil {
		s.network = &network{}
	}
	g, err := httpcap.New(s.needed, []httpcap.Rule{s.Rule}, httpcap.Options{Network: s.network, Secrets: s.secrets})
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// serve returns the origin of a server on loopback.
func serve(t testing.TB, h http.HandlerFunc) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	t.Cleanup(s.CloseClientConnections)
	return s.URL
}

// raw returns the origin of a server that handles each connection with a given function.
func raw(t testing.TB, do func(net.Conn)) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	t.Cleanup(func() { _ = l.Close(); all.Wait() })
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() {
				defer c.Close()
				do(c)
			})
		}
	})
	return "http://" + l.Addr().String()
}

// A call is a call of a tool, whose guest is this test.
type call struct{ *hosttest.Guest }

// begin begins a call of a tool with a grant.
func begin(t testing.TB, g any) *call {
	return &call{hosttest.Begin(t, nil, 1, hostcall.Run{Serving: true, Grants: []any{g}})}
}

func (c *call) invoke(name string, params ...uint64) uint64 {
	set := httpcap.Set()
	i := slices.IndexFunc(set.Functions, func(f hostabi.Function) bool { return f.Name == name })
	return c.Do(&set.Functions[i], 0, params...)
}

// An outgoing is a request of a guest.
type outgoing struct {
	Method   string     `json:"method"`
	URL      string     `json:"url"`
	Headers  [][]string `json:"headers,omitempty"`
	Timeout  int        `json:"timeout,omitempty"`
	Redirect string     `json:"redirect,omitempty"`
	body     string
}

// An incoming is the guest's answer, or the failure.
type incoming struct {
	Status  int         `json:"status"`
	URL     string      `json:"url"`
	Headers [][2]string `json:"headers"`
	Code    string      `json:"code"`
	Message string      `json:"message"`
	Body    string      `json:"-"`
	whole   string
}

func (in *incoming) header(name string) (values []string) {
	for _, pair := range in.Headers {
		if strings.EqualFold(pair[0], name) {
			values = append(values, pair[1])
		}
	}
	return values
}

func (c *call) send(t testing.TB, out outgoing) *incoming {
	t.Helper()
	if out.Method == "" {
		out.Method = "GET"
	}
	head, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	return c.sendHead(t, head, out.body)
}

func (c *call) sendHead(t testing.TB, head []byte, body string) *incoming {
	t.Helper()
	c.Memory = append(slices.Clone(head), body...)
	n := int32(uint32(c.invoke("send", 0, uint64(len(head)), uint64(len(head)), uint64(len(body)))))
	c.Memory = make([]byte, max(n, -n))
	c.invoke("answer_read", 0)
	in := &incoming{whole: string(c.Memory)}
	answered := c.Memory
	if n >= 0 {
		size := binary.LittleEndian.Uint32(answered)
		in.Body = string(answered[4+size:])
		answered = answered[4 : 4+size]
	}
	if err := json.Unmarshal(answered, in); err != nil {
		t.Fatalf("the answer is %q: %v", answered, err)
	}
	return in
}

// get sends one request in a new call.
func get(t testing.TB, g *httpcap.Permission, url string, headers ...[]string) *incoming {
	t.Helper()
	c := begin(t, g)
	defer c.ABI.End()
	return c.send(t, outgoing{URL: url, Headers: headers})
}

// TestURLs sends a request to each of the URLs in package reach's tests: an allowed one is dialled once, and nothing else is looked up or dialled.
// Proves: Requests go only where they were granted
func TestURLs(t *testing.T) {
	t.Parallel()
	for _, c := range reachtest.URLs(t) {
		n := &network{}
		in := get(t, grant(t, spec{Rule: httpcap.Rule{Granted: []string{c.Grant}, Private: []netip.Prefix{}}, network: n}), c.URL)
		want, dials := map[string]string{"allowed": "connect", "denied": "not_granted", "special": "not_granted", "invalid": "invalid"}[c.Outcome], 0
		if c.Outcome == "allowed" {
			dials = 1
		}
		if in.Code != want || len(n.dialed) != dials || len(n.asked) > dials {
			t.Errorf("%s: %q with the grant %s: got %s (%s), dials %v, look-ups %v; want %s", c.Where, c.URL, c.Grant, in.Code, in.Message, n.dialed, n.asked, want)
		}
		if strings.Contains(c.URL, "/?") && strings.Contains(in.Message, c.URL) {
			t.Errorf("the message has the query: %s", in.Message)
		}
	}
}

// TestNeither checks that nothing works without a grant, and that a URL must be in both need and grant.
// Proves: Nothing without a grant
func TestNeither(t *testing.T) {
	t.Parallel()
	url := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("a request has come") })
	for name, g := range map[string]any{
		"no grant":               nil,
		"a grant of nil":         (*httpcap.Permission)(nil),
		"another grant":          "all",
		"nothing":                grant(t, spec{}),
		"needed but not granted": grant(t, spec{needed: []string{url}}),
		"granted but not needed": grant(t, spec{Rule: httpcap.Rule{Granted: []string{url}}, needed: []string{}}),
		"no private addresses":   grant(t, spec{Rule: httpcap.Rule{Granted: []string{url}, Private: []netip.Prefix{}}}),
	} {
		c := begin(t, g)
		if in := c.send(t, outgoing{URL: url}); in.Code != "not_granted" || in.Message == "" {
			t.Errorf("%s: got %+v", name, in)
		}
		c.ABI.End()
	}
	start := begin(t, nil)
	start.ABI.Begin(hostcall.Run{})
	if in := start.send(t, outgoing{URL: url}); in.Code != "not_granted" || !strings.Contains(in.Message, "starts") {
		t.Errorf("in a start: got %+v", in)
	}
}

// TestRefusal checks that a refusal says what was asked for, what is granted, and which line to add.
func TestRefusal(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		needed, granted, url string
		want                 []string
	}{
		{"https://a.example", "https://a.example/v2/", "https://a.example/v1?key=x", []string{"https://a.example/v1", "granted only https://a.example/v2/", `http = ["https://a.example"]`}},
		{"https://a.example", "https://a.example/v2/", "https://a.example/" + strings.Repeat("x", 100), []string{"asked for https://a.example/..., but"}}, // a part of a secret would not be found
		{"https://a.example", "https://*", "https://b.example/", []string{"https://b.example/", "declares only that it needs https://a.example", "manifest"}},
		{"http://*", "http://*", "http://[4001:2:3::4]/", []string{"unassigned (4001::/16)", `private = ["4001::/16"]`}},
		{"http://*", "http://*", "http://10.1.2.3/", []string{"private (10.0.0.0/8)", `private = ["10.0.0.0/8"]`}},
	} {
		in := get(t, grant(t, spec{Rule: httpcap.Rule{Granted: []string{test.granted}}, needed: []string{test.needed}}), test.url)
		for _, want := range test.want {
			if in.Code != "not_granted" || !strings.Contains(in.Message, want) || strings.Contains(in.Message, "key=x") {
				t.Errorf("%s: got %s: %s; want it to have %q", test.url, in.Code, in.Message, want)
			}
		}
	}
}

// TestExchange sends requests, and checks what a server gets and what the guest gets.
func TestExchange(t *testing.T) {
	t.Parallel()
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		w.Header().Set("Alt-Svc", `h3=":443"`)
		w.Header().Add("X-Two", "1")
		w.Header().Add("X-Two", "2")
		w.WriteHeader(201)
		_ = json.NewEncoder(w).Encode(map[string]any{"method": r.Method, "uri": r.RequestURI, "proto": r.Proto, "host": r.Host, "headers": r.Header, "body": string(body), "length": r.ContentLength})
	})
	g := grant(t, spec{Rule: httpcap.Rule{Granted: []string{url}}})
	c := begin(t, g)
	in := c.send(t, outgoing{Method: "PATCH", URL: url + "/a%2Fb/%41;x?q=a+b&c[]=1#f", Headers: [][]string{{"content-type", "text/x"}, {"X-Many", "a"}, {"x-many", " b "}}, body: "the body"})
	var got struct {
		Method, URI, Proto, Host, Body string
		Headers                        http.Header
		Length                         int
	}
	if err := json.Unmarshal([]byte(in.Body), &got); err != nil || in.Status != 201 || in.URL != url+"/a%2Fb/%41;x?q=a+b&c[]=1" {
		t.Fatalf("got %+v, %v", in, err)
	}
	if got.Method != "PATCH" || got.URI != "/a%2Fb/%41;x?q=a+b&c[]=1" || got.Proto != "HTTP/1.1" || "http://"+got.Host != url || got.Body != "the body" || got.Length != 8 {
		t.Errorf("the server got %+v", got)
	}
	if h := got.Headers; h.Get("Content-Type") != "text/x" || !slices.Equal(h["X-Many"], []string{"a", "b"}) || h.Get("User-Agent") != "toolsrv" || h.Get("Accept-Encoding") != "gzip" || len(h) != 5 {
		t.Errorf("the server got the headers %v", h)
	}
	if !slices.Equal(in.header("X-Two"), []string{"1", "2"}) || in.header("Alt-Svc") != nil {
		t.Errorf("the guest got the headers %v", in.Headers)
	}
	if len(c.Uses) != 1 || c.Uses[0].Capability != "http" || c.Uses[0].Sent != 8 || c.Uses[0].Received != int64(len(in.Body)) || c.Uses[0].Outcome != "" || c.Uses[0].Took <= 0 || strings.Contains(c.Uses[0].Target, "?") {
		t.Errorf("got the uses %+v", c.Uses)
	}
	if in := c.send(t, outgoing{Method: "HEAD", URL: url + "/"}); in.Status != 201 || in.Body != "" {
		t.Errorf("HEAD: got %+v", in)
	}
	if most := int64(len(in.whole) + 48<<10); c.Held > most { // the answer, and the connection that is kept
		t.Errorf("%d bytes are held after the request, want %d at most", c.Held, most)
	}
	c.ABI.End()
}

// TestInvalid sends what a guest must not send.
// Proves: Requests go only where they were granted
func TestInvalid(t *testing.T) {
	t.Parallel()
	n := &network{}
	g := grant(t, spec{Rule: httpcap.Rule{Granted: []string{"https://a.example"}, RequestBytes: 10}, network: n})
	header := func(name, value string) string {
		b, _ := json.Marshal(outgoing{Method: "GET", URL: "https://a.example/", Headers: [][]string{{name, value}}})
		return string(b)
	}
	tests := map[string]string{ // heads and the expected codes
		``: "invalid", `null`: "invalid", `[]`: "invalid", `{}`: "invalid", `"x"`: "invalid", `{"method":"GET"}`: "invalid", `{"url":"https://a.example/"}`: "invalid",
		`{"method":"GET","url":"https://a.example/","url":"https://b.example/"}`:                                     "invalid",
		`{"method":"GET","url":"https://a.example/","URL":"https://b.example/"}`:                                     "invalid",
		`{"method":"GET","url":"https://a.example/","host":"b.example"}`:                                             "invalid",
		`{"method":"GET","url":"https://a.example/"}{}`:                                                              "invalid",
		`{"method":"GET","url":5}`:                                                                                   "invalid",
		`{"method":"GET","url":"https://a.example/","headers":[["a"]]}`:                                              "invalid",
		`{"method":"GET","url":"https://a.example/","headers":[["a","b","c"]]}`:                                      "invalid",
		`{"method":"GET","url":"https://a.example/","headers":[null]}`:                                               "invalid",
		`{"method":"GET","url":"https://a.example/","headers":{"a":"b"}}`:                                            "invalid",
		`{"method":"GET","url":"https://a.example/","timeout":-1}`:                                                   "invalid",
		`{"method":"GET","url":"https://a.example/","timeout":9223372036854775807}`:                                  "invalid",
		`{"method":"GET","url":"https://a.example/","redirect":"error"}`:                                             "invalid",
		`{"method":"GET","url":"https://a.example/` + "\xff" + `"}`:                                                  "invalid",
		`{"method":"GET","url":"https://a.example/","headers":[` + strings.Repeat(`["a","b"],`, 100) + `["a","b"]]}`: "too_large",
		header("a", strings.Repeat("x", 33<<10)):                                                                     "too_large",
		header("a", strings.Repeat("x", 129<<10)):                                                                    "too_large",
	}
	for _, method := range []string{"", "CONNECT", "connect", "TRACE", "TRACK", "GET /", "G\nET", "GET\x00", "GÉT", strings.Repeat("A", 33)} {
		b, _ := json.Marshal(outgoing{Method: method, URL: "https://a.example/"})
		tests[string(b)] = "invalid"
	}
	for _, name := range []string{"Host", "host", "HOST", "Connection", "Keep-Alive", "Proxy-Authorization", "proxy-connection", "Proxy_Authorization", "Proxy", "proxy", "PROXY", "Proxy.Authorization", "Content.Length", "Content~Length", "Transfer!Encoding", "Sec.Fetch-Site", "TE", "Trailer", "Transfer-Encoding", "Transfer_Encoding", "transfer-ENCODING",
		"Upgrade", "HTTP2-Settings", "Content-Length", "Content_Length", "Expect", "Accept-Encoding", "Sec-Fetch-Mode", "", " ", "a b", "Host ", " Host", "Host:", "a\nb", "a\r\nHost: x", "a:b", "é", "ſec-x", "a\x00", "(a)", "[a]", "a\tb"} {
		tests[header(name, "x")] = "invalid"
	}
	for _, value := range []string{"a\nb", "a\rb", "a\r\nHost: x", "a\x00b", "a\x7fb", "a\x1bb", "\n ", "a\n", "a\v"} {
		tests[header("a", value)] = "invalid"
	}
	for head, want := range tests {
		c := begin(t, g)
		if in := c.sendHead(t, []byte(head), ""); in.Code != want || len(n.asked) > 0 {
			t.Errorf("%.200q: got %+v, look-ups %v; want %s", head, in, n.asked, want)
		}
		c.ABI.End()
	}
	c := begin(t, g)
	if in := c.send(t, outgoing{URL: "https://a.example/", body: "12345678901"}); in.Code != "too_large" || !strings.Contains(in.Message, "http_request_bytes") {
		t.Errorf("a large body: got %+v", in)
	}
	for _, place := range [][]uint64{{1 << 31, 10, 0, 0}, {0, 10, 0, 0}, {math.MaxUint32, 2, 0, 0}} {
		c.Memory = make([]byte, 8)
		if trap := hosttest.Trapped(func() { c.invoke("send", place...) }); trap == "" {
			t.Error("a place outside the memory does not end the call")
		}
	}
}
