package tools_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/toolsrv/toolsrv/internal/capability/tools"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/runtime/limits"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/invoke"
)

// A witness notes what observers are told about nested calls.
type witness struct {
	mu   sync.Mutex
	told []string
}

func (o *witness) note(how string, r *invoke.Record) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if r.Depth > 0 {
		o.told = append(o.told, fmt.Sprintf("%s %s of %s at %s/%s: %s", how, r.Path, r.Principal, r.Door, r.RequestID, r.Code()))
	}
}

func (o *witness) Began(ctx context.Context, _ *invoke.Record) context.Context { return ctx }
func (o *witness) Ended(_ context.Context, r *invoke.Record)                   { o.note("ended", r) }
func (o *witness) Refused(r *invoke.Record)                                    { o.note("refused", r) }

// take returns what was noted since the last call.
func (o *witness) take() []string {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer func() { o.told = nil }()
	return o.told
}

// A client is a caller whose identity may have changed by the time of a nested call. The first call of Now is for the outer call.
type client struct {
	w     *world
	asked int
	first *wasmtools.Principal
	then  *wasmtools.Principal // nil: it is no longer admitted
}

func (c *client) Now() (*wasmtools.Generation, *wasmtools.Principal, error) {
	c.asked++
	switch {
	case c.asked == 1:
		return c.w.table.Current(), c.first, nil
	case c.then == nil:
		return nil, nil, &wasmtools.Error{Code: wasmtools.CodeUnauthorized, Err: errors.New("revoked")}
	}
	return c.w.table.Current(), c.then, nil
}

func (c *client) Finally(f func())    {}
func (c *client) Address() netip.Addr { return netip.Addr{} }

// TestObserved checks that observers are told once of each call that a tool makes, even of a call that is refused before package invoker sees it.
func TestObserved(t *testing.T) {
	t.Parallel()
	o := &witness{}
	w := newWorld(t, sandbox.Config{}, func(w *world) {
		w.observers, w.all = []invoke.Observer{o}, limits.Limits{Concurrency: 20}
	}, native("one", nil1), native("off", nil1), native("private", nil1))
	if err := w.table.Disable("go/off", ""); err != nil {
		t.Fatal(err)
	}
	all, few, other := mustPrincipal(t, "*"), mustPrincipal(t, "a/*"), wasmtools.Everybody()
	one, _ := w.table.Lookup("/go/one")
	right, bound := mustPrincipal(t, "a/*", "go/one@"+one.Fingerprint()), mustPrincipal(t, "a/*", "go/one@"+strings.Repeat("0", 64))
	const by = " of somebody at /mcp/id-1: "
	for _, test := range []struct {
		name, arguments string
		principal       *wasmtools.Principal
		client          *client
		want            []string
	}{
		{name: "a call that is made", arguments: nested(1, "", "go/one", `{}`), want: []string{"ended /go/one" + by}},
		{name: "not granted", arguments: nested(1, "", "go/private", `{}`), want: []string{"refused go/private" + by + "forbidden"}},
		{name: "not there", arguments: nested(1, "", "go/gone", `{}`), want: []string{"refused /go/gone" + by + "not_found"}},
		{name: "a tool that the caller may not call", principal: few, arguments: nested(1, "", "go/one", `{}`), want: []string{"refused /go/one" + by + "not_found"}},
		{name: "a tool other than the one that the caller is bound to", principal: bound, arguments: nested(1, "", "go/one", `{}`), want: []string{"refused /go/one" + by + "tool_changed"}},
		{name: "the tool that the caller is bound to", principal: right, arguments: nested(1, "", "go/one", `{}`), want: []string{"ended /go/one" + by}},
		{name: "switched off", arguments: nested(1, "", "go/off", `{}`), want: []string{"refused /go/off" + by + "tool_disabled"}},
		{name: "too deep", arguments: nested(tools.MaxDepth+1, "a/once", "go/one", `{}`),
			want: append([]string{"refused /go/one" + by + "forbidden"}, slices.Repeat([]string{"ended /a/once" + by}, tools.MaxDepth)...)},
		{name: "a client whose identity has changed", client: &client{then: other}, arguments: nested(1, "", "go/one", `{}`), want: []string{"refused /go/one" + by + "unauthorized"}},
		{name: "a client that is no longer admitted", client: &client{}, arguments: nested(1, "", "go/one", `{}`), want: []string{"refused /go/one" + by + "unauthorized"}},
	} {
		if test.principal == nil {
			test.principal = all
		}
		call := &wasmtools.Call{Principal: test.principal, Arguments: []byte(test.arguments), Door: "/mcp", RequestID: "id-1"}
		if test.client != nil {
			test.client.w, test.client.first = w, test.principal
			call.Client = test.client
		}
		if _, err := w.raw(t.Context(), call, "/a/once"); err != nil {
			t.Errorf("%s: %v", test.name, err)
		}
		if got := o.take(); !slices.Equal(got, test.want) {
			t.Errorf("%s: observers were told\n%s\nwant\n%s", test.name, strings.Join(got, "\n"), strings.Join(test.want, "\n"))
		}
	}
}
