package invoker_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/invoker"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/invoke"
)

// A recorder is an observer that notes what it is told.
type recorder struct {
	mu    sync.Mutex
	lines strings.Builder
	times wasmtools.Times
	took  time.Duration
}

func (o *recorder) note(how string, r *invoke.Record) {
	o.mu.Lock()
	defer o.mu.Unlock()
	fmt.Fprintf(&o.lines, "%s %s by %s: %d>%d %s\n", how, r.Path, r.Principal, len(r.Arguments), len(r.Result), r.Code())
	o.times, o.took = r.Times, r.Took
}

// all returns what was noted since the last call.
func (o *recorder) all() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer o.lines.Reset()
	return o.lines.String()
}

func (o *recorder) Began(ctx context.Context, r *invoke.Record) context.Context {
	o.note("began", r)
	return ctx
}
func (o *recorder) Ended(_ context.Context, r *invoke.Record) { o.note("ended", r) }
func (o *recorder) Refused(r *invoke.Record)                  { o.note("refused", r) }

type spanKey struct{}

// A span is an observer that gives calls its own context.
type span struct {
	name  string
	ended []string
}

func (s *span) Began(ctx context.Context, r *invoke.Record) context.Context {
	before, _ := ctx.Value(spanKey{}).(string)
	return context.WithValue(ctx, spanKey{}, before+"/"+s.name+fmt.Sprint(r.Depth))
}

func (s *span) Ended(ctx context.Context, r *invoke.Record) {
	s.ended = append(s.ended, fmt.Sprintf("%v %s %s %s %s %.4s %q %q %v %v", ctx.Value(spanKey{}), r.Door, r.RequestID, r.Path, r.Tool.Version, r.Tool.Digest,
		r.Arguments, r.Result, r.Uses, r.Error))
}

func (s *span) Refused(r *invoke.Record) { s.ended = append(s.ended, "refused "+r.Path) }

// An outer is an outer call. Its value is the depth at which the call is nested.
type outer int

func (o outer) Depth() int { return int(o) }

// TestObservers checks that several observers are told of a call and of a nested one, and that the first observer's context reaches the second
// observer and the tools.
func TestObservers(t *testing.T) {
	t.Parallel()
	first, second := &span{name: "a"}, &span{name: "b"}
	v := invoker.New(invoker.Options{Observers: []invoke.Observer{first, second}})
	var seen []string
	inner := tool("inner", func(ctx context.Context, c *wasmtools.Call) ([]byte, error) {
		seen = append(seen, fmt.Sprint(ctx.Value(spanKey{})))
		return nil, &wasmtools.Error{Code: wasmtools.CodeToolTrapped, Err: errors.New("the cause")}
	})
	out := tool("out", func(ctx context.Context, c *wasmtools.Call) ([]byte, error) {
		seen = append(seen, fmt.Sprint(ctx.Value(spanKey{})))
		c.Used(wasmtools.Use{Capability: "kv", Count: 1})
		within := invoker.Inside(c, outer(0))
		within.Arguments = []byte(`{"n":2}`)
		_, _ = v.Call(ctx, invoker.RouteTo(inner), within)
		return []byte(`7`), nil
	})
	out.Version, out.Digest = "1.2", "abcdef"
	c := call(`{}`)
	c.Door, c.RequestID = "/mcp", "id-1"
	if _, err := v.Call(t.Context(), invoker.RouteTo(out), c); err != nil {
		t.Fatal(err)
	}
	want := []string{
		`/a0/b0/a1/b1 /mcp id-1 /inner   "{\"n\":2}" "" [] tool_trapped: the cause`,
		`/a0/b0 /mcp id-1 /out 1.2 abcd "{}" "7" [{kv 1 0 0 0 0 0s}] <nil>`,
	}
	for _, o := range []*span{first, second} {
		if got := strings.Join(o.ended, "\n"); got != strings.Join(want, "\n") {
			t.Errorf("%s was told\n%s\nwant\n%s", o.name, got, strings.Join(want, "\n"))
		}
	}
	if got := strings.Join(seen, " "); got != "/a0/b0 /a0/b0/a1/b1" {
		t.Errorf("the tools have %s", got)
	}
}

// silent observes without noting anything.
type silent struct{}

func (silent) Began(ctx context.Context, _ *invoke.Record) context.Context { return ctx }
func (silent) Ended(context.Context, *invoke.Record)                       {}
func (silent) Refused(*invoke.Record)                                      {}

// Not parallel: AllocsPerRun counts what the whole process allocates.
func TestObserversAllocateNothing(t *testing.T) {
	result := []byte("3")
	bare := tool("echo", func(context.Context, *wasmtools.Call) ([]byte, error) { return result, nil })
	bare.Parameters = anything
	route := invoker.RouteTo(bare)
	off := route
	off.Enabled = false
	measure := func(route wasmtools.Route, observers ...invoke.Observer) float64 {
		v, c := invoker.New(invoker.Options{Observers: observers}), call(`{}`)
		body := c.Arguments
		return testing.AllocsPerRun(100, func() {
			c.Arguments = body
			_, _ = v.Call(t.Context(), route, c)
		})
	}
	if none, two := measure(route), measure(route, silent{}, silent{}); none > 3 || two > none {
		t.Errorf("a call takes %v allocations unobserved, and %v observed; want three of the validation and no more", none, two)
	}
	if none, two := measure(off), measure(off, silent{}, silent{}); none > 2 || two > none+1 { // allocations for the error with its message, and for the record
		t.Errorf("a refused call takes %v allocations unobserved, and %v observed; want 2 and 3", none, two)
	}
	v, c, none := invoker.New(invoker.Options{}), call(`{}`), errors.New("none")
	if got := testing.AllocsPerRun(100, func() { v.Refuse("/none", invoker.Inside(c, outer(3)), none) }); got > 0 {
		t.Errorf("a refused call without observers takes %v allocations", got)
	}
}

// A gone is a Client whose access has been revoked.
type gone struct{}

func (gone) Now() (*wasmtools.Generation, *wasmtools.Principal, error) {
	return nil, nil, &wasmtools.Error{Code: wasmtools.CodeUnauthorized}
}
func (gone) Finally(func())      {}
func (gone) Address() netip.Addr { return netip.Addr{} }

// TestRefusedEarly checks that observers are told of calls that are refused before Begin.
func TestRefusedEarly(t *testing.T) {
	t.Parallel()
	var o recorder
	v := invoker.New(invoker.Options{Observers: []invoke.Observer{&o}})
	c := call(`{}`)
	v.Refuse("/none", invoker.Inside(c, outer(3)), errors.New("odd"))
	if got, want := o.all(), "refused /none by everybody: 0>0 internal\n"; got != want {
		t.Errorf("Refuse: got %s, want %s", got, want)
	}
	c.Client = gone{}
	if _, err := v.Call(t.Context(), invoker.RouteTo(tool("echo", nil)), c); err == nil {
		t.Error("the call of a client that is no longer admitted is made")
	}
	if got, want := o.all(), "refused /echo by everybody: 0>0 unauthorized\n"; got != want {
		t.Errorf("Call: got %s, want %s", got, want)
	}
}
