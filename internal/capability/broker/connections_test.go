package broker_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/toolsrv/toolsrv/internal/capability/broker"
	httpcap "github.com/toolsrv/toolsrv/internal/capability/http"
	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/runtime/hostcall"
	"github.com/toolsrv/toolsrv/internal/testkit/hosttest"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// A room counts connections.
type room struct{ n atomic.Int64 }

func (r *room) Take() bool { r.n.Add(1); return true }
func (r *room) Give()      { r.n.Add(-1) }

// TestConnectionsEndWithCalls reloads grants: equal grants continue, and no connection outlives its call.
// Proves: A service can't use up the host
func TestConnectionsEndWithCalls(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	defer server.Close()
	parsed := func(timeout string) *config.Config {
		c, err := config.Parse(fmt.Appendf(nil, "[[grant]]\nmatch = 'x'\nhttp = [%q]\nprivate = ['127.0.0.0/8']\nhttp_timeout = %q", server.URL, timeout), t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	r := &room{}
	b := broker.New(parsed("1s"), broker.Options{Connections: r})
	var before any
	for i, timeout := range []string{"10s", "10s", "11s", "11s", "10s"} {
		grants, err := b.Make(parsed(timeout), nil)
		if err != nil {
			t.Fatal(err)
		}
		granted := grants.For("/x", wasmtools.Needs{"http": {Words: []string{server.URL}}})
		if len(granted.Values) != 1 || len(granted.Missing) > 0 {
			t.Fatalf("got %v, missing %v", granted.Values, granted.Missing)
		}
		changed := i == 2 || i == 4
		if got := granted.Values[0].Value != before; i > 0 && got != changed {
			t.Errorf("reload %d: a new grant: %t, want %t", i, got, changed)
		}
		before = granted.Values[0].Value
		head, _ := json.Marshal(map[string]string{"method": "GET", "url": server.URL})
		g := hosttest.Begin(t, head, 1, hostcall.Run{Serving: true, Grants: []any{before}})
		returned := int32(uint32(g.Do(&httpcap.Set().Functions[0], 0, 0, uint64(len(head)), 0, 0)))
		if returned < 0 || r.n.Load() != 1 {
			t.Errorf("reload %d: the request returned %d, and %d connections are open, want 1", i, returned, r.n.Load())
		}
		g.ABI.End()
		if n := r.n.Load(); n != 0 {
			t.Errorf("reload %d: %d connections are open after the call", i, n)
		}
	}
}
