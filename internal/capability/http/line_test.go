package http_test

import (
	"bufio"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	httpcap "github.com/toolsrv/toolsrv/internal/capability/http"
)

// forged is an answer to no request.
const forged = "HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged"

// confuse is a service that is wrong about where its answers end, in a way that the first element of the path chooses. Other requests are answered
// with the rest of the path.
func confuse(c net.Conn) {
	in := bufio.NewReader(c)
	for {
		r, err := http.ReadRequest(in)
		if err != nil {
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		how, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		whole := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(rest), rest)
		switch how {
		case "204":
			whole = "HTTP/1.1 204 No Content\r\n\r\n" + forged
		case "304":
			whole = "HTTP/1.1 304 Not Modified\r\n\r\n" + forged
		case "304late":
			_, _ = io.WriteString(c, "HTTP/1.1 304 Not Modified\r\n\r\n")
			time.Sleep(time.Millisecond)
			whole = forged
		case "more":
			whole += forged
		case "bytes":
			whole += "\r\nstray"
		case "late":
			_, _ = io.WriteString(c, whole)
			time.Sleep(time.Duration(len(rest)) * 500 * time.Microsecond) // up to 10 ms
			whole = forged
		case "twice":
			whole += whole
		}
		if _, err := io.WriteString(c, whole); err != nil {
			return
		}
	}
}

// TestForeignAnswers makes callers of one tool use a service that is wrong about where its answers end. Nobody gets another caller's answer.
// Proves: Requests go only where they were granted
func TestForeignAnswers(t *testing.T) {
	t.Parallel()
	url := raw(t, confuse)
	g := grant(t, spec{Rule: httpcap.Rule{Granted: []string{url}}})
	hows := []string{"204", "304", "304late", "more", "bytes", "late", "twice"}
	const calls, callers = 2584, 8
	var number, foreign atomic.Int64
	var all sync.WaitGroup
	for range callers {
		all.Go(func() {
			for n := number.Add(1); n <= calls; n = number.Add(1) {
				if n%2 == 0 {
					get(t, g, fmt.Sprintf("%s/%s/%s", url, hows[int(n/2)%len(hows)], strings.Repeat("x", int(n/2)%20)))
					continue
				}
				want := fmt.Sprint("own", n)
				if in := get(t, g, url+"/plain/"+want); in.Code != "" || in.Body != want {
					foreign.Add(1)
				}
			}
		})
	}
	all.Wait()
	if n := foreign.Load(); n > 0 {
		t.Errorf("%d of %d calls got something other than their own answer", n, calls/2)
	}
}

// TestAnswersInACall makes one call send several requests to such a service, with and without TLS. What has arrived before a request is sent is not
// taken for its answer.
// Proves: Requests go only where they were granted
func TestAnswersInACall(t *testing.T) {
	t.Parallel()
	ca := newAuthority(t)
	config := &tls.Config{Certificates: []tls.Certificate{ca.issue(&x509.Certificate{DNSNames: []string{"a.example"}})}}
	secure := raw(t, func(c net.Conn) { confuse(tls.Server(c, config)) })
	for name, url := range map[string]string{"plain": raw(t, confuse), "TLS": "https://a.example" + secure[strings.LastIndexByte(secure, ':'):]} {
		g := grant(t, spec{Rule: httpcap.Rule{Granted: []string{url}, CA: ca.pem}, network: here("a.example")})
		for _, how := range []string{"plain", "204", "304", "more", "bytes", "twice"} {
			for _, method := range []string{"GET", "POST"} {
				c := begin(t, g)
				for range 5 {
					c.send(t, outgoing{URL: url + "/" + how + "/other"})
					if in := c.send(t, outgoing{Method: method, URL: url + "/plain/own"}); in.Code != "" || in.Body != "own" {
						t.Errorf("%s, %s after %s: got %s", name, method, how, in.whole)
					}
				}
				c.ABI.End()
			}
		}
	}
}

// TestTooEarly makes a service answer before there is a request.
// Proves: Requests go only where they were granted
func TestTooEarly(t *testing.T) {
	t.Parallel()
	arrived := make(chan bool)
	url := raw(t, func(c net.Conn) {
		in := bufio.NewReader(c)
		for i := 0; ; i++ {
			r, err := http.ReadRequest(in)
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
			if r.URL.Path == "/early" {
				<-arrived // the answer has been read
				_, _ = io.WriteString(c, forged)
				arrived <- true
			}
		}
	})
	c := begin(t, grant(t, spec{Rule: httpcap.Rule{Granted: []string{url}}}))
	defer c.ABI.End()
	for range 3 {
		if in := c.send(t, outgoing{URL: url + "/early"}); in.Body != "ok" {
			t.Errorf("got %s", in.whole)
		}
		arrived <- true
		<-arrived
		if in := c.send(t, outgoing{Method: "POST", URL: url + "/", body: "body"}); in.Body != "ok" {
			t.Errorf("after an answer that nobody asked for: got %s", in.whole)
		}
	}
}

// TestLines checks that a call reuses its connections, and that they end with it.
// Proves: Requests go only where they were granted
func TestLines(t *testing.T) {
	t.Parallel()
	handler := func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/redirect" {
			http.Redirect(w, r, "/", http.StatusSeeOther)
			return
		}
		_, _ = io.Copy(io.Discard, r.Body)
		_, _ = io.WriteString(w, r.RemoteAddr)
	}
	url := serve(t, handler)
	var others []string
	for range 5 {
		others = append(others, serve(t, handler))
	}
	room := newRoom(100)
	rule := httpcap.Rule{Granted: append(others, url), Private: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, Redirects: 1}
	g, err := httpcap.New(rule.Granted, []httpcap.Rule{rule}, httpcap.Options{Network: &network{}, Connections: httpcap.NewConnections(room)})
	if err != nil {
		t.Fatal(err)
	}
	c, another := begin(t, g), begin(t, g)
	first := c.send(t, outgoing{URL: url}).Body
	for _, test := range []struct {
		name string
		out  outgoing
		same bool
	}{
		{"again", outgoing{URL: url}, true},
		{"POST", outgoing{Method: "POST", URL: url, body: "body"}, true},
		{"HEAD", outgoing{Method: "HEAD", URL: url}, true},
		{"after HEAD", outgoing{URL: url}, true},
		{"a large body, which has a connection of its own", outgoing{Method: "POST", URL: url, body: strings.Repeat("x", 100<<10)}, false},
		{"after that", outgoing{URL: url}, true},
	} {
		if in := c.send(t, test.out); in.Status != 200 || test.out.Method != "HEAD" && (in.Body == first) != test.same {
			t.Errorf("%s: got the connection %s, the first one was %s, want the same: %t", test.name, in.whole, first, test.same)
		}
	}
	if other := another.send(t, outgoing{URL: url}).Body; other == first || other == "" {
		t.Errorf("another call got the first call's connection %s", other)
	}
	if in := c.send(t, outgoing{URL: url + "/redirect"}); in.Status != 200 {
		t.Errorf("redirected: got %s", in.whole)
	}
	for _, u := range others {
		c.send(t, outgoing{URL: u})
	}
	if n := room.open(); n > 5 {
		t.Errorf("two calls have %d connections", n)
	}
	another.ABI.End()
	c.ABI.End()
	if n := room.open(); n != 0 {
		t.Errorf("%d connections are open after the calls", n)
	}
	if most := int64(1 << 20); c.MostHeld > most {
		t.Errorf("%d bytes were held", c.MostHeld)
	}
}
