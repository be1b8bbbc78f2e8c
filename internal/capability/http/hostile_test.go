package http_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"runtime"
	"strings"
	"testing"

	httpcap "github.com/toolsrv/toolsrv/internal/capability/http"
	"github.com/toolsrv/toolsrv/internal/testkit/hosttest"
)

// say makes a server read the head of a request, and answer with text. Then it sends more, again and again, until the client gives up.
func say(text, more string) func(net.Conn) {
	return func(c net.Conn) {
		b := make([]byte, 4096)
		for n := 0; !bytes.Contains(b[:n], []byte("\r\n\r\n")); {
			m, err := c.Read(b[n:])
			if n += m; err != nil {
				return
			}
		}
		_, err := io.WriteString(c, text)
		for err == nil && more != "" {
			_, err = io.WriteString(c, more)
		}
	}
}

func zipped(n int) string {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	zeros := make([]byte, 1<<20)
	for ; n > 0; n -= len(zeros) {
		_, _ = w.Write(zeros[:min(n, len(zeros))])
	}
	_ = w.Close()
	return b.String()
}

// TestHostileServers has servers that attack a client in many ways. The request fails with a code, and little memory is held meanwhile.
// Proves: A service can't use up the host
func TestHostileServers(t *testing.T) {
	t.Parallel()
	const limit = 100 << 10
	bomb := zipped(16 << 20)
	if len(bomb) > 50<<10 {
		t.Fatalf("the bomb has %d bytes", len(bomb))
	}
	block := strings.Repeat("x", 8<<10)
	ok := "HTTP/1.1 200 OK\r\n"
	for _, test := range []struct {
		name string
		do   func(net.Conn)
		code string
	}{
		{"never answers", func(c net.Conn) { _, _ = io.Copy(io.Discard, c) }, "timeout"},
		{"closes at once", func(net.Conn) {}, "unavailable"},
		{"closes after the request", say("", ""), "unavailable"},
		{"stops in the head", func(c net.Conn) { say(ok+"X: y\r\n", "")(c); _, _ = io.Copy(io.Discard, c) }, "timeout"},
		{"stops in the body", func(c net.Conn) { say(ok+"Content-Length: 10\r\n\r\nabc", "")(c); _, _ = io.Copy(io.Discard, c) }, "timeout"},
		{"dribbles", func(c net.Conn) {
			say(ok+"Content-Length: 1000\r\n\r\n", "")(c)
			one := make([]byte, 1)
			for range 1000 { // a byte at a time, and no byte may become the answer to the next request
				if _, err := c.Write(one); err != nil {
					return
				}
				runtime.Gosched()
			}
		}, ""},
		{"cuts the body off", say(ok+"Content-Length: 10\r\n\r\nabc", ""), "unavailable"},
		{"cuts a chunk off", say(ok+"Transfer-Encoding: chunked\r\n\r\n5\r\nabc", ""), "unavailable"},
		{"announces 10 GB", say(ok+"Content-Length: 10000000000\r\n\r\n", block), "too_large"},
		{"sends without end", say(ok+"\r\n", block), "too_large"},
		{"sends chunks without end", say(ok+"Transfer-Encoding: chunked\r\n\r\n", "2000\r\n"+block+"\r\n"), "too_large"},
		{"sends tiny chunks with long extensions", say(ok+"Transfer-Encoding: chunked\r\n\r\n", "1;"+strings.Repeat("e", 4000)+"\r\nx\r\n"), "unavailable"},
		{"a gzip bomb", say(ok+"Content-Encoding: gzip\r\n\r\n"+bomb, ""), "too_large"},
		{"a gzip bomb, called x-gzip", say(ok+"Content-Encoding: X-GZIP\r\n\r\n"+bomb, ""), "too_large"},
		{"endless gzips of nothing", say(ok+"Content-Encoding: gzip\r\n\r\n", strings.Repeat(zipped(0), 500)), "too_large"},
		{"gzip in gzip", say(ok+"Content-Encoding: gzip, gzip\r\n\r\n"+bomb, ""), "unavailable"},
		{"gzip twice", say(ok+"Content-Encoding: gzip\r\nContent-Encoding: gzip\r\n\r\n"+bomb, ""), "unavailable"},
		{"brotli", say(ok+"Content-Encoding: br\r\n\r\nabc", ""), "unavailable"},
		{"zstd", say(ok+"Content-Encoding: zstd\r\n\r\nabc", ""), "unavailable"},
		{"deflate", say(ok+"Content-Encoding: deflate\r\n\r\nabc", ""), "unavailable"},
		{"no gzip", say(ok+"Content-Encoding: gzip\r\n\r\nabcdefghijklmnopqrst", ""), "unavailable"},
		{"half a gzip", say(ok+"Content-Encoding: gzip\r\n\r\n"+zipped(1000)[:20], ""), "unavailable"},
		{"an endless header", say(ok+"X: ", block), "too_large"},
		{"endless headers", say(ok, "X: "+block+"\r\n"), "too_large"},
		{"endless small headers", say(ok, "X: y\r\n"), "too_large"},
		{"many small headers", say(ok+strings.Repeat("X: y\r\n", 1000)+"Content-Length: 10\r\n\r\n", ""), "too_large"},
		{"headers of 100 KiB", say(ok+strings.Repeat("X: "+block[:1000]+"\r\n", 100)+"Content-Length: 0\r\n\r\n", ""), "too_large"},
		{"1xx without end", say("", "HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"), "too_large"},
		{"100 without end", say("", "HTTP/1.1 100 Continue\r\n\r\n"), "too_large"},
		{"switches protocols", say("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", block), "unavailable"},
		{"an endless status line", say("HTTP/1.1 200 ", block), "too_large"},
		{"not HTTP", say("220 smtp.example ESMTP\r\n", ""), "unavailable"},
		{"HTTP/0.9", say("<html></html>", ""), "unavailable"},
		{"HTTP/2", say("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", ""), "unavailable"},
		{"TLS", say("\x15\x03\x01\x00\x02\x02\x46", ""), "unavailable"},
		{"status 0", say("HTTP/1.1 000 \r\n\r\n", ""), "unavailable"},
		{"status 99999", say("HTTP/1.1 99999 \r\n\r\n", ""), "unavailable"},
		{"two lengths", say(ok+"Content-Length: 1\r\nContent-Length: 2\r\n\r\nab", ""), "unavailable"},
		{"a negative length", say(ok+"Content-Length: -1\r\n\r\n", ""), "unavailable"},
		{"a huge length", say(ok+"Content-Length: 99999999999999999999\r\n\r\n", ""), "unavailable"},
		{"length and chunks", say(ok+"Content-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n", ""), ""},
		{"a folded header", say(ok+"X: a\r\n b\r\nContent-Length: 0\r\n\r\n", ""), ""},
		{"a header with a NUL", say(ok+"X: a\x00b\r\nContent-Length: 0\r\n\r\n", ""), "unavailable"},
		{"endless trailers", say(ok+"Transfer-Encoding: chunked\r\n\r\n0\r\n", "X: "+block+"\r\n"), "unavailable"},
		{"another answer after the first", say(ok+"Content-Length: 2\r\n\r\nok"+ok+"Content-Length: 4\r\n\r\nevil", ""), ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			url := raw(t, test.do)
			c := begin(t, grant(t, spec{Rule: httpcap.Rule{Granted: []string{url}, ResponseBytes: limit}}))
			timeout := 60_000
			if test.code == "timeout" {
				timeout = 500 // this includes connecting, on a busy machine
			}
			for range 2 { // twice, since a connection in a bad state might be used again
				if in := c.send(t, outgoing{URL: url + "/", Timeout: timeout}); in.Code != test.code || strings.Contains(in.Body, "evil") {
					t.Errorf("got %.300q, want %q", in.whole, test.code)
				}
			}
			if c.MostHeld > 3*limit+500<<10 {
				t.Errorf("%d bytes were held", c.MostHeld)
			}
			c.ABI.End()
		})
	}
}

// TestBodyBounds sends and receives bodies of the allowed size, and of one byte more.
// Proves: A service can't use up the host
func TestBodyBounds(t *testing.T) {
	t.Parallel()
	const limit = 70_000
	url := serve(t, func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		var size int
		_, _ = fmt.Sscan(r.URL.Query().Get("size"), &size)
		switch r.URL.Path {
		case "/chunked":
			w.(http.Flusher).Flush()
		case "/zipped":
			w.Header().Set("Content-Encoding", "gzip")
			_, _ = io.WriteString(w, zipped(size))
			return
		}
		w.Header().Set("X-Got", fmt.Sprint(n))
		_, _ = w.Write(make([]byte, size))
	})
	g := grant(t, spec{Rule: httpcap.Rule{Granted: []string{url}, ResponseBytes: limit, RequestBytes: limit}})
	for _, path := range []string{"/", "/chunked", "/zipped"} {
		for size, code := range map[int]string{0: "", 1: "", 16 << 10: "", limit - 1: "", limit: "", limit + 1: "too_large", 10 * limit: "too_large"} {
			in := get(t, g, fmt.Sprintf("%s%s?size=%d", url, path, size))
			if in.Code != code || code == "" && (len(in.Body) != size || in.header("Content-Encoding") != nil || in.header("Content-Length")[0] != fmt.Sprint(size)) {
				t.Errorf("%s of %d bytes: got %q and %d bytes, headers %v", path, size, in.Code, len(in.Body), in.Headers)
			}
		}
	}
	c := begin(t, g)
	for size, code := range map[int]string{limit: "", limit + 1: "too_large"} {
		if in := c.send(t, outgoing{Method: "POST", URL: url + "/", body: strings.Repeat("x", size)}); in.Code != code {
			t.Errorf("sent %d bytes: got %+v", size, in)
		}
	}
	c.ABI.End()
	c = begin(t, grant(t, spec{Rule: httpcap.Rule{Granted: []string{url}, Requests: 2}}))
	for i, code := range []string{"", "", "limit", "limit"} {
		if in := c.send(t, outgoing{URL: url + "/"}); in.Code != code {
			t.Errorf("request %d: got %+v", i, in)
		}
	}
	c.ABI.End()
	// Nested calls of the tool belong to one client's call.
	g = grant(t, spec{Rule: httpcap.Rule{Granted: []string{url}, Requests: 2}})
	client := begin(t, g)
	for i, code := range []string{"", "", "limit", "limit"} {
		inner := begin(t, g)
		inner.Tallies = client.Tallies
		if in := inner.send(t, outgoing{URL: url + "/"}); in.Code != code {
			t.Errorf("request of the call %d inside another: got %+v", i, in)
		}
		inner.ABI.End()
	}
	client.ABI.End()
}

// TestCallEnds makes a call end while it waits for a server: the server sees the connection close.
// Proves: A service can't use up the host
func TestCallEnds(t *testing.T) {
	t.Parallel()
	arrived, gone := make(chan bool), make(chan bool)
	url := serve(t, func(_ http.ResponseWriter, r *http.Request) {
		arrived <- true
		<-r.Context().Done()
		close(gone)
	})
	c := begin(t, grant(t, spec{Rule: httpcap.Rule{Granted: []string{url}}}))
	ctx, cancel := context.WithCancel(t.Context())
	c.Context = ctx
	go func() { <-arrived; cancel() }()
	if trap := hosttest.Trapped(func() { c.send(t, outgoing{URL: url + "/"}) }); trap != "the call is over" {
		t.Errorf("got the trap %q", trap)
	}
	c.ABI.End()
	<-gone
}

// TestDialEnds makes a call end while it waits for a name server or a connection: both waits end.
// Proves: A service can't use up the host
func TestDialEnds(t *testing.T) {
	t.Parallel()
	for name, n := range map[string]*stuck{"look-up": {lookup: true}, "dial": {}} {
		n.begun, n.ended = make(chan bool), make(chan bool)
		c := begin(t, grant(t, spec{Rule: httpcap.Rule{Granted: []string{"http://a.example"}}, network: n}))
		ctx, cancel := context.WithCancel(t.Context())
		c.Context = ctx
		go func() { <-n.begun; cancel() }()
		if trap := hosttest.Trapped(func() { c.send(t, outgoing{URL: "http://a.example/"}) }); trap == "" {
			t.Errorf("%s: the call does not end", name)
		}
		<-n.ended
	}
}

// A stuck network never answers. It reports when something starts and stops waiting for it.
type stuck struct {
	lookup       bool
	begun, ended chan bool
}

func (n *stuck) wait(ctx context.Context) error {
	n.begun <- true
	<-ctx.Done()
	close(n.ended)
	return ctx.Err()
}

func (n *stuck) Lookup(ctx context.Context, _ string) ([]netip.Addr, error) {
	if n.lookup {
		return nil, n.wait(ctx)
	}
	return []netip.Addr{netip.MustParseAddr(public)}, nil
}

func (n *stuck) Interfaces() ([]netip.Prefix, error) { return nil, nil }

func (n *stuck) Dial(ctx context.Context, _ netip.AddrPort) (net.Conn, error) {
	return nil, n.wait(ctx)
}
