package nats_test

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/toolsrv/toolsrv/internal/core"
	"github.com/toolsrv/toolsrv/internal/signing"
	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/switches"
	"github.com/toolsrv/toolsrv/internal/tokens"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/gotool"
)

// balance returns the address of a simple balancer: each request goes to the next server.
func balance(t *testing.T, all ...*peer) string {
	t.Helper()
	var turn atomic.Uint64
	proxy := &httputil.ReverseProxy{
		FlushInterval: -1,
		Rewrite: func(r *httputil.ProxyRequest) {
			to, err := url.Parse(all[turn.Add(1)%uint64(len(all))].url)
			if err != nil {
				t.Error(err)
			}
			r.SetURL(to)
			// If a server answers while the body is still being read, Go's proxy ends the connection.
			body, err := io.ReadAll(r.In.Body)
			if err != nil {
				t.Error(err)
			}
			r.Out.Body = io.NopCloser(bytes.NewReader(body))
		},
	}
	s := httptest.NewServer(proxy)
	t.Cleanup(func() {
		s.CloseClientConnections()
		s.Close()
	})
	return s.URL
}

const beginSession = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`
const callAdd = `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"math-add","arguments":{"a":40,"b":2}}}`

// mcp sends a message to a server, in a session and with a token; both may be empty.
func mcp(t *testing.T, method, at, session, token, body string) (status int, text, id string) {
	t.Helper()
	headers := []string{"Accept", "application/json, text/event-stream"}
	if session != "" {
		headers = append(headers, "Mcp-Session-Id", session)
	}
	if token != "" {
		headers = append(headers, "Authorization", "Bearer "+token)
	}
	status, text, answered := send(t, method, at+"/mcp", body, headers...)
	return status, text, answered.Get("Mcp-Session-Id")
}

// TestSessionsOfAll checks that sessions continue behind a balancer that sends each request to the next server, after a restart, and while NATS is
// away.
func TestSessionsOfAll(t *testing.T) {
	t.Parallel()
	c := start(t, 1, nil)
	gate := newGate(t, c)
	one, two := newPeer(t, c.url()), newPeer(t, gate.url())
	at := balance(t, one, two)
	works := func(when, id string) {
		t.Helper()
		for range 6 {
			if status, text, _ := mcp(t, http.MethodPost, at, id, "", callAdd); status != 200 || !strings.Contains(text, "42") {
				t.Fatalf("%s: %d %s", when, status, text)
			}
		}
	}
	_, _, id := mcp(t, http.MethodPost, at, "", "", beginSession)
	works("at first", id)

	three := newPeer(t, c.url())
	if status, text, _ := mcp(t, http.MethodPost, three.url, id, "", callAdd); status != 200 {
		t.Errorf("on a server that was started later: %d %s", status, text)
	}

	_, _, ended := mcp(t, http.MethodPost, one.url, "", "", beginSession)
	if status, _, _ := mcp(t, http.MethodDelete, two.url, ended, "", ""); status != http.StatusNoContent {
		t.Fatalf("DELETE: %d", status)
	}
	for _, r := range []*peer{one, three, two} {
		eventually(t, "a session has ended everywhere", func() bool {
			status, _, _ := mcp(t, http.MethodPost, r.url, ended, "", callAdd)
			return status == http.StatusNotFound
		})
	}

	gate.shut()
	eventually(t, "the second server is cut off", func() bool { return two.service.State.CutOff() != nil })
	works("while one is cut off", id)
	_, _, late := mcp(t, http.MethodPost, two.url, "", "", beginSession)
	works("begun on the server that is cut off", late)
	gate.open()
	works("after that", id)
}

// TestSessionsOfTokens checks that a session belongs to one token only, on each server, and ends with it.
func TestSessionsOfTokens(t *testing.T) {
	t.Parallel()
	c := start(t, 1, nil)
	one, two, last := newPeer(t, c.url()), newPeer(t, c.url()), newPeer(t, c.url()) // the last server never gets a request of the session
	secrets := map[string]string{}
	for _, name := range []string{"ann", "eve"} {
		secret, _, err := one.service.Tokens.Add(t.Context(), tokens.Spec{Name: name, Scopes: []string{"*"}})
		if err != nil {
			t.Fatal(err)
		}
		secrets[name] = secret
	}
	eventually(t, "both servers know the tokens", func() bool { // a server that has no tokens yet lets everybody in
		for who, want := range map[string]int{secrets["ann"]: 200, secrets["eve"]: 200, "nonsense": 401} {
			if status, _, _ := mcp(t, http.MethodPost, two.url, "", who, beginSession); status != want {
				return false
			}
		}
		return true
	})
	_, _, id := mcp(t, http.MethodPost, one.url, "", secrets["ann"], beginSession)
	for i, r := range []*peer{one, two} {
		for who, want := range map[string]int{secrets["ann"]: 200, secrets["eve"]: 404, "": 401, "nonsense": 401} {
			if status, text, _ := mcp(t, http.MethodPost, r.url, id, who, callAdd); status != want {
				t.Errorf("server %d: got %d %s, want %d", i, status, text, want)
			}
		}
	}
	if _, err := one.service.Tokens.Revoke(t.Context(), "ann", state.Any); err != nil {
		t.Fatal(err)
	}
	for _, r := range []*peer{one, two} {
		eventually(t, "the token is revoked", func() bool {
			status, _, _ := mcp(t, http.MethodPost, r.url, id, secrets["ann"], callAdd)
			return status == 401
		})
	}
	again, _, err := one.service.Tokens.Add(t.Context(), tokens.Spec{Name: "ann", Scopes: []string{"*"}})
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range []*peer{one, two, last} {
		eventually(t, "the other token is known", func() bool {
			status, _, _ := mcp(t, http.MethodPost, r.url, "", again, beginSession)
			return status == 200
		})
		if status, _, _ := mcp(t, http.MethodPost, r.url, id, again, callAdd); status != 404 {
			t.Errorf("server %d: another token of the same name has the session: %d", i, status)
		}
	}
}

// TestClientOfAll lets go-sdk's client use two servers behind a balancer as if they were one.
func TestClientOfAll(t *testing.T) {
	t.Parallel()
	c := start(t, 1, nil)
	one, two := newPeer(t, c.url()), newPeer(t, c.url())
	at := balance(t, one, two)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	changed := make(chan struct{}, 100)
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ClientOptions{
		ToolListChangedHandler: func(context.Context, *sdk.ToolListChangedRequest) { changed <- struct{}{} },
	})
	s, err := client.Connect(ctx, &sdk.StreamableClientTransport{Endpoint: at + "/mcp"}, &sdk.ClientSessionOptions{ProtocolVersion: "2025-11-25"})
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if list, err := s.ListTools(ctx, nil); err != nil || len(list.Tools) != 1 {
			t.Fatalf("%+v, %v", list, err)
		}
		result, err := s.CallTool(ctx, &sdk.CallToolParams{Name: "math-add", Arguments: map[string]any{"a": 40, "b": 2}})
		if err != nil || result.IsError {
			t.Fatalf("%+v, %v", result, err)
		}
	}
	time.Sleep(100 * time.Millisecond) // wait until the client's stream is open, on either server
	for len(changed) > 0 {
		<-changed
	}
	if _, err := one.service.Switches.Apply(ctx, switches.Change{Set: []wasmtools.Switch{{Scope: "/math/add", Since: time.Now()}}}); err != nil {
		t.Fatal(err)
	}
	select {
	case <-changed:
	case <-ctx.Done():
		t.Error("the client was not told of the change")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	eventually(t, "no server holds the session", func() bool {
		_, first := one.ask(t, http.MethodGet, "/metrics", "")
		_, second := two.ask(t, http.MethodGet, "/metrics", "")
		return !strings.Contains(first+second, "\ntoolsrv_mcp_sessions 1\n")
	})
}

// TestCancelOfAll cancels a call through a different server than the one that runs it.
func TestCancelOfAll(t *testing.T) {
	t.Parallel()
	c := start(t, 3, nil)
	begun, ended := make(chan struct{}, 1), make(chan struct{})
	type none struct{}
	wait := gotool.New("math/wait", "Waits.", func(ctx context.Context, _ none) (none, error) {
		begun <- struct{}{}
		<-ctx.Done()
		close(ended)
		return none{}, ctx.Err()
	})
	one, two := newPeer(t, c.url(), wait), newPeer(t, c.url())
	_, _, id := mcp(t, http.MethodPost, one.url, "", "", beginSession)
	q, err := http.NewRequestWithContext(t.Context(), http.MethodPost, one.url+"/mcp", strings.NewReader(`{"jsonrpc":"2.0","id":"a call","method":"tools/call","params":{"name":"math-wait"}}`))
	if err != nil {
		t.Fatal(err)
	}
	q.Header = http.Header{"Content-Type": {"application/json"}, "Accept": {"application/json, text/event-stream"}, "Mcp-Session-Id": {id}}
	go func() {
		if a, err := http.DefaultClient.Do(q); err == nil {
			a.Body.Close()
		}
	}()
	<-begun
	began := time.Now()
	if status, text, _ := mcp(t, http.MethodPost, two.url, id, "", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"a call"}}`); status != http.StatusAccepted {
		t.Fatalf("%d %s", status, text)
	}
	select {
	case <-ended:
		t.Logf("the call ended after %v", time.Since(began))
	case <-time.After(10 * time.Second):
		t.Error("the call goes on")
	}
}

// TestSigningKeys starts processes at the same time, and one later: all use the same key, which is in the state.
func TestSigningKeys(t *testing.T) {
	t.Parallel()
	c := start(t, 3, nil)
	var all []*core.Service
	for range 3 {
		all = append(all, serve(t, c.url()))
	}
	text := []byte("text")
	for i, s := range all {
		number, signature := s.Keys.Sign(text)
		if number == 0 {
			t.Errorf("process %d signs with a key of its own", i)
		}
		for j, other := range all {
			if !other.Keys.Check(number, text, signature) {
				t.Errorf("process %d does not take what process %d has signed", j, i)
			}
		}
	}
	if e, ok, err := all[0].State.Store().Space(signing.Space).Get(t.Context(), "keys", 4<<10); err != nil || !ok || e.Version == 0 {
		t.Errorf("the state has %v, %t, %v", e, ok, err)
	}
}
