package server_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/audit"
	"github.com/toolsrv/toolsrv/internal/events"
)

// listen opens a stream of events for a token, and returns when the stream has begun. headers are names and values.
func listen(r *running, token string, headers ...string) *bufio.Reader {
	r.tb.Helper()
	answer := tryToListen(r, http.DefaultClient, token, headers...)
	if answer.StatusCode != http.StatusOK {
		r.tb.Fatalf("got %d", answer.StatusCode)
	}
	lines := bufio.NewReader(answer.Body)
	if line, err := lines.ReadString('\n'); !strings.HasPrefix(line, "retry: ") {
		r.tb.Fatalf("got %q (%v)", line, err)
	}
	return lines
}

func tryToListen(r *running, client *http.Client, token string, headers ...string) *http.Response {
	r.tb.Helper()
	q, err := http.NewRequestWithContext(r.tb.Context(), http.MethodGet, r.url+events.Path, nil)
	if err != nil {
		r.tb.Fatal(err)
	}
	if token != "" {
		q.Header.Set("Authorization", "Bearer "+token)
	}
	for i := 0; i < len(headers); i += 2 {
		q.Header.Set(headers[i], headers[i+1])
	}
	answer, err := client.Do(q)
	if err != nil {
		r.tb.Fatal(err)
	}
	r.tb.Cleanup(func() { answer.Body.Close() })
	return answer
}

// nextEvent returns the data of the next event, or how the stream has ended.
func nextEvent(tb testing.TB, lines *bufio.Reader) string {
	tb.Helper()
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return err.Error()
		}
		if data, ok := strings.CutPrefix(line, "data: "); ok {
			return strings.TrimSpace(data)
		}
	}
}

// TestEventsOfAdministrators checks that administrators get events of the audit and of refused files, unless the server is not administered over
// HTTP, or a page of another origin listens. Others only get events of tools.
// Proves: A caller reaches its own tools only
func TestEventsOfAdministrators(t *testing.T) {
	t.Parallel()
	c := settings(t)
	c.State.Directory = shortDir(t)
	c.Server.CORSOrigins = []string{"https://console.example"}
	r := start(t, c)
	boss, reader, caller := issue(r, "boss", "admin"), issue(r, "reader", "admin:read"), issue(r, "caller", "*")
	const page = "https://console.example"
	listeners := map[string]*bufio.Reader{
		"boss": listen(r, boss), "reader": listen(r, reader), "caller": listen(r, caller),
		"boss by a listed page": listen(r, boss, "Origin", page, "Sec-Fetch-Site", "cross-site"), "caller by a listed page": listen(r, caller, "Origin", page),
		"boss by the server's page": listen(r, boss, "Origin", r.url, "Sec-Fetch-Site", "same-origin"),
	}
	happens := func() {
		t.Helper()
		if err := r.of.Audit.Append(t.Context(), audit.Entry{Action: "tried", Who: "boss"}); err != nil {
			t.Fatal(err)
		}
		if err := r.Table().Disable("/shop/echo", "x"); err != nil {
			t.Fatal(err)
		}
		if err := r.Table().Enable("/shop/echo"); err != nil {
			t.Fatal(err)
		}
	}
	happens()
	admins := map[string]bool{"boss": true, "reader": true, "boss by the server's page": true}
	for name, lines := range listeners {
		if strings.HasPrefix(name, "boss by a") {
			continue // gets no events, since it may call no tool
		}
		if got := nextEvent(t, lines); strings.Contains(got, `"action":"tried"`) != admins[name] {
			t.Errorf("%s got %s", name, got)
		}
	}
	next := *c
	next.Admin.Disabled = true
	if err := r.Reload(&next); err != nil {
		t.Fatal(err)
	}
	happens()
	for _, name := range []string{"boss", "reader", "boss by the server's page"} {
		got := ""
		for !strings.Contains(got, `"kind":"reset"`) {
			if got = nextEvent(t, listeners[name]); strings.Contains(got, `"action":"tried"`) || got == io.EOF.Error() {
				t.Fatalf("%s got %s after the door of administrators was closed", name, got)
			}
		}
	}
	last := next // a copy: the configuration in force must not be changed
	last.Events.Enabled = false
	if err := r.Reload(&last); err != nil {
		t.Fatal(err)
	}
	for name, lines := range listeners {
		if rest, err := io.ReadAll(lines); err != nil || strings.Contains(string(rest), "tried") {
			t.Errorf("%s: after events were switched off, got %s (%v)", name, rest, err)
		}
	}
	if got := tryToListen(r, http.DefaultClient, caller).StatusCode; got != http.StatusNotFound {
		t.Errorf("switched off, got %d", got)
	}
}

// TestEventsFromElsewhere sends requests like pages of other sites, and odd ones.
// Proves: Web pages are kept out
func TestEventsFromElsewhere(t *testing.T) {
	t.Parallel()
	c := settings(t)
	c.Server.CORSOrigins = []string{"https://listed.example"}
	r := start(t, c)
	for name, test := range map[string]struct {
		headers []string
		want    int
	}{
		"no page":                       {nil, 200},
		"a listed page":                 {[]string{"Origin", "https://listed.example", "Sec-Fetch-Site", "cross-site"}, 200},
		"a foreign page":                {[]string{"Origin", "https://evil.example", "Sec-Fetch-Site", "cross-site", "Accept", "text/event-stream"}, 403},
		"no origin":                     {[]string{"Sec-Fetch-Site", "cross-site"}, 403},
		"a sandboxed frame":             {[]string{"Origin", "null"}, 403},
		"a long id":                     {[]string{"Last-Event-ID", strings.Repeat("1", 1<<20)}, 431},
		"an id that no server has sent": {[]string{"Last-Event-ID", "-1"}, 200},
	} {
		answer := tryToListen(r, http.DefaultClient, "", test.headers...)
		if answer.StatusCode != test.want {
			t.Errorf("%s: got %d, want %d", name, answer.StatusCode, test.want)
		}
		if allowed := answer.Header.Get("Access-Control-Allow-Origin") != ""; allowed != (name == "a listed page") {
			t.Errorf("%s: the page may read the answer: %t", name, allowed)
		}
		answer.Body.Close()
	}
	for _, method := range []string{http.MethodHead, http.MethodPost, http.MethodPut, http.MethodDelete} {
		q, _ := http.NewRequestWithContext(t.Context(), method, r.url+events.Path, nil)
		answer, err := http.DefaultClient.Do(q)
		if err != nil || answer.StatusCode != http.StatusMethodNotAllowed {
			t.Errorf("%s: got %v, %v", method, answer, err)
		}
		answer.Body.Close()
	}
}

// TestEventsOverHTTP2 checks that streams on one connection get the event of a change, and end soon when the server drains.
// Proves: Clients keep nobody out
func TestEventsOverHTTP2(t *testing.T) {
	t.Parallel()
	r := start(t, settings(t))
	var protocols http.Protocols
	protocols.SetUnencryptedHTTP2(true)
	connections := 0
	transport := &http.Transport{Protocols: &protocols, DialContext: func(ctx context.Context, network, address string) (net.Conn, error) {
		connections++
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}}
	defer transport.CloseIdleConnections()
	var streams []*bufio.Reader
	for range 50 {
		answer := tryToListen(r, &http.Client{Transport: transport}, "")
		if answer.ProtoMajor != 2 || answer.StatusCode != http.StatusOK {
			t.Fatalf("got %s %d", answer.Proto, answer.StatusCode)
		}
		streams = append(streams, bufio.NewReader(answer.Body))
	}
	if connections != 1 {
		t.Errorf("there are %d connections", connections)
	}
	if err := r.Table().Disable("/shop/echo", "x"); err != nil {
		t.Fatal(err)
	}
	for _, lines := range streams {
		if got := nextEvent(t, lines); !strings.Contains(got, `"tool":"/shop/echo","state":"disabled"`) {
			t.Fatalf("got %s", got)
		}
	}
	began := time.Now()
	r.stop()
	for _, lines := range streams {
		if _, err := io.ReadAll(lines); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.result(); err != nil {
		t.Error(err)
	}
	if took := time.Since(began); took > 10*time.Second {
		t.Errorf("the drain took %s with streams open", took)
	}
}
