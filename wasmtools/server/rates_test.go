package server_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/rates"
	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/internal/tokens"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/gotool"
)

// rated makes a token with a rate, and returns its secret.
func rated(r *running, name, rate string, burst, concurrent int) string {
	r.tb.Helper()
	secret, _, err := r.of.Tokens.Add(r.tb.Context(), tokens.Spec{Name: name, Scopes: []string{"*"}, Rate: rateOf(r.tb, rate, burst, concurrent)})
	if err != nil {
		r.tb.Fatal(err)
	}
	return secret
}

func rateOf(tb testing.TB, text string, burst, concurrent int) wasmtools.Rate {
	tb.Helper()
	r, err := rates.Text{Rate: text, Burst: burst, Concurrent: concurrent}.Parse()
	if err != nil {
		tb.Fatal(err)
	}
	return r
}

// TestRateAtEachDoor calls a tool through each door until the rate, which all doors share, is used up. Each door refuses calls in the form that its
// clients understand.
// Proves: Clients keep nobody out
func TestRateAtEachDoor(t *testing.T) {
	t.Parallel()
	c := settings(t)
	c.State.Directory = t.TempDir()
	c.MCP.Search = "always"
	r := start(t, c)
	secret, other := rated(r, "ci", "6/h", 0, 0), rated(r, "other", "1/h", 0, 0)
	session, _ := beginSession(r, secret, "")
	bearer := "Bearer " + secret
	inSession := func() *http.Response {
		q, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url+"/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"shop-echo","arguments":{}}}`))
		for key, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", "Authorization": bearer, "Mcp-Session-Id": session, "Mcp-Protocol-Version": "2025-11-25"} {
			q.Header.Set(key, value)
		}
		answer, err := http.DefaultClient.Do(q)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { answer.Body.Close() })
		return answer
	}
	modern := func(name, arguments string) *http.Response {
		return r.ask("/mcp", "tools/call", name, `"name":"`+name+`","arguments":`+arguments, "Authorization", bearer)
	}
	text := func(a *http.Response) string {
		all, _ := io.ReadAll(a.Body)
		return string(all)
	}
	// Requests that are not calls, and calls of missing tools, don't count.
	for range 20 {
		for _, path := range []string{"/shop/none", "/none", "/shop"} {
			if got := r.status(path, secret); got != http.StatusNotFound {
				t.Fatalf("%s: got %d", path, got)
			}
		}
		document(r, secret)
		r.ask("/mcp", "tools/list", "", "", "Authorization", bearer)
	}
	for n, a := range []func() string{
		func() string { return text(inSession()) },
		func() string { return text(modern("shop-echo", "{}")) },
		func() string { return text(modern("call_tool", `{"name":"shop-echo","arguments":{}}`)) },
		func() string { return text(modern("search_tools", `{"query":"echo"}`)) },
		func() string { return text(modern("shop-echo", "{}")) },
		func() string { _, body, _ := r.call("/shop/echo", secret); return body },
	} {
		if got := a(); strings.Contains(got, "rate_limited") || strings.Contains(got, `"error"`) || got == "" {
			t.Fatalf("call %d of 6: got %s", n+1, got)
		}
	}
	// One more request at each door.
	q, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url+"/shop/echo", strings.NewReader("{}"))
	q.Header.Set("Content-Type", "application/json")
	q.Header.Set("Authorization", bearer)
	rest, err := http.DefaultClient.Do(q)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rest.Body.Close() })
	inMCP := []string{`"isError":true`, `"code":"rate_limited"`, `"retry_after":`, `The caller's rate of 6/h is used up; try again in `}
	for name, test := range map[string]struct {
		answer *http.Response
		status int
		want   []string
	}{
		"REST":                {rest, 429, []string{`"code":"rate_limited"`, `"detail":"The caller's rate of 6/h is used up; try again in `}},
		"MCP":                 {modern("shop-echo", "{}"), 200, inMCP},
		"MCP's call_tool":     {modern("call_tool", `{"name":"shop-echo","arguments":{}}`), 200, inMCP},
		"MCP's search_tools":  {modern("search_tools", `{"query":"echo"}`), 200, inMCP},
		"MCP with a session":  {inSession(), 200, inMCP},
		"MCP with wrong args": {modern("shop-echo", "[]"), 400, nil},
	} {
		got := text(test.answer)
		h := test.answer.Header
		if test.answer.StatusCode != test.status {
			t.Errorf("%s: got %d %s", name, test.answer.StatusCode, got)
		}
		for _, want := range test.want {
			if !strings.Contains(got, want) {
				t.Errorf("%s: got %s, want %s", name, got, want)
			}
		}
		if test.want != nil && (h.Get("Retry-After") == "" || !strings.HasPrefix(h.Get("RateLimit"), `"rate";r=0;t=`) || h.Get("RateLimit-Policy") != `"rate";q=6;w=3600`) {
			t.Errorf("%s: got the headers %v", name, h)
		}
	}
	if got := r.status("/shop/echo", other); got != http.StatusOK {
		t.Errorf("another principal: got %d", got)
	}
	r.log.Wait(t, `"code":"rate_limited","error":"the rate of ci is used up: 6/h, 6 at once"`)
}

// TestRateStays changes everything around a rate: tokens are rotated and attenuated, scopes and the configuration change. Used-up calls stay used up.
// Proves: Clients keep nobody out
func TestRateStays(t *testing.T) {
	t.Parallel()
	c := settings(t)
	c.State.Directory = t.TempDir()
	c.Rates.Default = rateOf(t, "2/h", 0, 0)
	c.Auth.Tokens = []string{"plain"}
	r := start(t, c)
	ctx := t.Context()
	secret := rated(r, "ci", "3/h", 0, 0)
	spend := func(token string, want int) {
		t.Helper()
		got := 0
		for range want + 2 {
			if status := r.status("/shop/echo", token); status == http.StatusOK {
				got++
			} else if status != http.StatusTooManyRequests {
				t.Fatalf("got %d", status)
			}
		}
		if got != want {
			t.Errorf("got %d calls, want %d", got, want)
		}
	}
	var narrow []string
	parent := principalOf(r, "ci")
	for n, rate := range []string{"", "", "1/h", "1000/s"} {
		s, _, err := r.of.Tokens.Attenuate(ctx, parent, tokens.Spec{Name: fmt.Sprint("n", n), Scopes: []string{"shop/echo"}, Rate: rateOf(t, rate, 0, 0)})
		if err != nil {
			t.Fatal(err)
		}
		narrow = append(narrow, s)
	}
	spend(narrow[2], 1) // its own
	spend(narrow[0], 2) // then all tokens share the remaining calls
	for _, s := range append(narrow, secret) {
		spend(s, 0)
	}
	rotated, _, err := r.of.Tokens.Rotate(ctx, "ci", time.Hour, state.Any)
	if err != nil {
		t.Fatal(err)
	}
	spend(rotated, 0)
	spend(secret, 0)
	if _, err := r.of.Tokens.SetScopes(ctx, "ci", []string{"*", "shop/*"}, state.Any); err != nil {
		t.Fatal(err)
	}
	spend(rotated, 0)
	spend("plain", 2)
	next := *c
	next.Title = "Another"
	next.Rates.Anonymous = rateOf(t, "1/h", 0, 0)
	if err := r.Reload(&next); err != nil {
		t.Fatal(err)
	}
	spend("plain", 0)
	spend(rotated, 0)
	if _, err := r.of.Tokens.SetRate(ctx, "ci", rateOf(t, "1000/s", 1000, 0), state.Any); err != nil {
		t.Fatal(err)
	}
	// After a second all calls are available again, also to the tokens that the token has made.
	deadline := time.Now().Add(patience)
	for r.status("/shop/echo", narrow[1]) != http.StatusOK {
		if time.Now().After(deadline) {
			t.Fatal("the higher rate is not in force")
		}
		time.Sleep(time.Millisecond)
	}
}

func principalOf(r *running, name string) *wasmtools.Principal {
	r.tb.Helper()
	v, err := tokens.NewVerifier(r.of.Tokens, nil, nil, nil)
	if err != nil {
		r.tb.Fatal(err)
	}
	for _, p := range v.Principals() {
		if p.String() == name {
			return p
		}
	}
	r.tb.Fatalf("no principal is called %s", name)
	return nil
}

// TestRateOfAddresses has clients that name addresses other than their own, and a proxy that may do so.
// Proves: Clients keep nobody out
func TestRateOfAddresses(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name    string
		trusted bool
		names   []string // the addresses of clients; each makes two calls
		want    int      // the number of calls that are allowed
	}{
		{"whom nobody trusts", false, []string{"203.0.113.1", "203.0.113.2", "::1", ""}, 1},
		{"a proxy's clients", true, []string{"203.0.113.1", "203.0.113.2"}, 2},
		{"one client of a proxy", true, []string{"203.0.113.1", "198.51.100.9, 203.0.113.1"}, 1},
		{"in one network", true, []string{"2001:db8::1", "2001:db8::2", "2001:db8::ffff:0:0:1"}, 1},
		{"in several networks", true, []string{"2001:db8::1", "2001:db8:0:1::1"}, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := settings(t)
			c.Rates.Anonymous = rateOf(t, "1/h", 0, 0)
			if test.trusted {
				c.Server.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
			}
			r := start(t, c)
			may := 0
			for _, name := range append(test.names, test.names...) {
				q, _ := http.NewRequestWithContext(t.Context(), http.MethodPost, r.url+"/shop/echo", strings.NewReader("{}"))
				q.Header.Set("Content-Type", "application/json")
				if name != "" {
					q.Header.Set("X-Forwarded-For", name)
					q.Header.Set("Forwarded", "for="+name)
					q.Header.Set("X-Real-Ip", name)
				}
				answer, err := http.DefaultClient.Do(q)
				if err != nil {
					t.Fatal(err)
				}
				answer.Body.Close()
				if answer.StatusCode == http.StatusOK {
					may++
				}
			}
			if may != test.want {
				t.Errorf("%d calls were made, want %d", may, test.want)
			}
		})
	}
}

// TestSlowBodiesCount sends heads of calls without bodies: each counts as a running call from its head on, until the client goes away. So does an
// HTTP/2 stream. "100 Continue" shows that a call is counted and that the server waits for its body.
// Proves: Clients keep nobody out
func TestSlowBodiesCount(t *testing.T) {
	t.Parallel()
	c := settings(t)
	c.State.Directory = t.TempDir()
	r := start(t, c)
	secret, streaming, other := rated(r, "ci", "", 0, 2), rated(r, "streaming", "", 0, 2), rated(r, "other", "", 0, 2)
	head := "POST /shop/echo HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + secret + "\r\nContent-Type: application/json\r\nContent-Length: 100\r\nExpect: 100-continue\r\n\r\n"
	const goOn = "HTTP/1.1 100 Continue"
	first, second := r.dial(), r.dial()
	for _, conn := range []io.ReadWriter{first, second} {
		if _, err := io.WriteString(conn, head); err != nil {
			t.Fatal(err)
		}
		got := make([]byte, len(goOn))
		if _, err := io.ReadFull(conn, got); err != nil || string(got) != goOn {
			t.Fatalf("got %q, %v", got, err)
		}
	}
	if got := r.status("/shop/echo", secret); got != http.StatusTooManyRequests {
		t.Errorf("while two bodies are awaited: got %d", got)
	}
	if got := r.status("/shop/echo", other); got != http.StatusOK {
		t.Errorf("another principal: got %d", got)
	}
	first.Close()
	testkit.Until(t, "a call to get through with one body less", func() bool { return r.status("/shop/echo", secret) == http.StatusOK })

	f := frames(t, r)
	for _, id := range []uint32{1, 3} {
		f.send(f.request(id, "/shop/echo", false, "authorization", "Bearer "+streaming, "expect", "100-continue"))
		if got := f.status(id); got != "100" {
			t.Fatalf("stream %d: got %s", id, got)
		}
	}
	if got := r.status("/shop/echo", streaming); got != http.StatusTooManyRequests {
		t.Errorf("while two streams are open: got %d", got)
	}
}

// A shop is a server with a tool whose calls take a fixed time but no processor time: two of them run at the same time.
func slowShop(t *testing.T, c *config.Config, takes time.Duration) *running {
	t.Helper()
	manifest := `{"abi":1,"namespace":"a","tools":[{"name":"once","description":"Calls.","parameters":{"type":"object"},"needs":{"tools":["units/convert"]}}]}`
	testkit.Put(t, c.Tools.Directory, "a.wasm", sandboxtest.WithManifest(t, testkit.Fixture(t, "wat/good/caller"), manifest))
	parsed, err := config.Parse([]byte("[limits]\nconcurrency = 2\ntimeout = '1m'\n[[grant]]\nmatch = 'a/once'\ntools = ['units/convert']\n"), c.Tools.Directory)
	if err != nil {
		t.Fatal(err)
	}
	c.Limits, c.Grants = parsed.Limits, parsed.Grants
	convert := gotool.New("units/convert", "Converts.", func(ctx context.Context, _ struct{}) (int, error) {
		select {
		case <-time.After(takes):
			return 7, nil
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	})
	r := run(t, build(t, c, convert))
	r.log.Wait(t, `"msg":"ready"`)
	return r
}

// TestFairness lets one caller flood a tool, and another one call it now and then: the other caller's 99th percentile is at most twice its 99th
// percentile without the flood, plus the time of one call. That holds with rates and without, for principals and for addresses.
// Proves: Clients keep nobody out
func TestFairness(t *testing.T) {
	if testkit.Race(t) || testing.Short() {
		t.Skip("measures for half a minute what a quiet machine takes: not with -race or -short")
	}
	const takes = 20 * time.Millisecond
	for _, test := range []struct {
		name  string
		known bool   // callers are identified by tokens, not by addresses
		rate  string // the rate of the caller that floods
	}{
		{"principals", true, ""},
		{"a principal at 100 times its rate", true, "5/s"},
		{"addresses", false, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := settings(t)
			c.State.Directory = t.TempDir()
			c.Server.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
			r := slowShop(t, c, takes)
			flood, quiet := "203.0.113.1", "203.0.113.2"
			if test.known {
				flood, quiet = rated(r, "flood", test.rate, 0, 0), issue(r, "quiet", "*")
			}
			transport := &http.Transport{MaxIdleConnsPerHost: 256}
			t.Cleanup(transport.CloseIdleConnections)
			client := &http.Client{Transport: transport, Timeout: patience}
			call := func(ctx context.Context, who string) (int, error) {
				q, _ := http.NewRequestWithContext(ctx, http.MethodPost, r.url+"/a/once", strings.NewReader(`{"id":"units-convert","args":{}}`))
				q.Header.Set("Content-Type", "application/json")
				if test.known {
					q.Header.Set("Authorization", "Bearer "+who)
				} else {
					q.Header.Set("X-Forwarded-For", who)
				}
				answer, err := client.Do(q)
				if err != nil {
					return 0, err
				}
				defer answer.Body.Close()
				_, err = io.Copy(io.Discard, answer.Body)
				return answer.StatusCode, err
			}
			p99 := func() time.Duration {
				var took []time.Duration
				for range 100 {
					begun := time.Now()
					if status, err := call(t.Context(), quiet); err != nil || status != http.StatusOK {
						t.Fatal("the quiet caller got", status, err)
					}
					took = append(took, time.Since(begun))
				}
				slices.Sort(took)
				return took[98]
			}
			if _, err := call(t.Context(), quiet); err != nil { // it compiles
				t.Fatal(err)
			}
			beside := func(measure func() time.Duration) (took time.Duration, refused int) {
				ctx, cancel := context.WithCancel(t.Context())
				var flooding sync.WaitGroup
				floods := make(chan int, 100)
				for range cap(floods) {
					flooding.Go(func() {
						n := 0
						for ctx.Err() == nil {
							if status, err := call(ctx, flood); err == nil && status != http.StatusOK {
								n++
								// Without a pause, clients would use up this machine's processors. With the pause, there are 500 calls a
								// second.
								select {
								case <-ctx.Done():
								case <-time.After(200 * time.Millisecond):
								}
							} else if err != nil && !errors.Is(err, context.Canceled) {
								t.Error(err)
								return
							}
						}
						floods <- n
					})
				}
				took = measure()
				cancel()
				flooding.Wait()
				close(floods)
				for n := range floods {
					refused += n
				}
				return took, refused
			}
			var idle, busy time.Duration
			var refused int
			for range 5 { // this machine may start other work during a measurement
				idle = p99()
				if busy, refused = beside(p99); busy <= 2*idle+takes {
					break
				}
			}
			if busy > 2*idle+takes {
				t.Errorf("during the flood the 99th percentile is %v, and %v without it", busy, idle)
			}
			if refused == 0 {
				t.Error("the caller that floods was never refused: it is no flood")
			}
			t.Logf("99th percentile: %v without a flood, %v during it; %d of the flood's calls were refused", idle, busy, refused)
		})
	}
}
