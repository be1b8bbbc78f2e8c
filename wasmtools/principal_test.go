package wasmtools_test

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/gotool"
	"github.com/toolsrv/toolsrv/wasmtools/schema"
)

func TestPrincipal(t *testing.T) {
	t.Parallel()
	given := []string{"math/*", "/text/upper"}
	p, err := wasmtools.NewPrincipal("ci", wasmtools.OriginToken, given...)
	if err != nil {
		t.Fatal(err)
	}
	given[0] = "*"
	p.Scopes()[0] = "*"
	for path, want := range map[string]bool{
		"/math/add": true, "/math/deep/add": true, "/text/upper": true,
		"/math": false, "/maths/add": false, "/text/lower": false, "/": false, "": false,
	} {
		if got := p.May(path); got != want {
			t.Errorf("%q: got %t, want %t", path, got, want)
		}
	}
	if shown := p.WithCredential("7"); shown.Credential() != "7" || p.Credential() != "" || !shown.Is(p) || !shown.May("/math/add") {
		t.Errorf("with a credential, the principal is %+v", shown)
	}
	if p.String() != "ci" || p.Origin() != "token" || strings.Join(p.Scopes(), " ") != "math/* /text/upper" {
		t.Errorf("got %s, %s, %q", p, p.Origin(), p.Scopes())
	}
}

// TestWhoMayAll tries principals that may call every tool, and others that may call none.
// Proves: A caller reaches its own tools only
func TestWhoMayAll(t *testing.T) {
	t.Parallel()
	made := func(scopes ...string) *wasmtools.Principal {
		p, err := wasmtools.NewPrincipal("ci", "test", scopes...)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	for name, test := range map[string]struct {
		principal *wasmtools.Principal
		want      bool
	}{
		"everybody":       {wasmtools.Everybody(), true},
		"the process":     {wasmtools.Self(), true},
		"every tool":      {made("*"), true},
		"every namespace": {made("none", "/**"), true},
		"one namespace":   {made("text"), false},
		"no scope":        {made(), false},
		"zero":            {&wasmtools.Principal{}, false},
		"nil":             {nil, false},
	} {
		for _, path := range []string{"/math/add", "/add"} {
			if got := test.principal.May(path); got != test.want {
				t.Errorf("%s: %s: got %t, want %t", name, path, got, test.want)
			}
		}
		if got := test.principal.MayAll(); got != test.want {
			t.Errorf("%s: may call every tool: got %t, want %t", name, got, test.want)
		}
		_, _, _ = test.principal.String(), test.principal.Origin(), test.principal.Scopes()
	}
}

// TestMayCall tries principals with fingerprints, some of which are the tool's.
// Proves: A caller reaches its own tools only
func TestMayCall(t *testing.T) {
	t.Parallel()
	add := &wasmtools.Tool{Namespace: "math", Name: "add", Description: "Adds.", Parameters: schema.MustCompile(`{"type":"object"}`), Caller: wasmtools.CallerFunc(nil)}
	table, err := wasmtools.NewRouteTable(add)
	if err != nil {
		t.Fatal(err)
	}
	route, _ := table.Lookup("/math/add")
	other := *add
	other.Description = "Adds, and tells a stranger."
	is, is1 := add.Fingerprint(), other.Fingerprint()
	for scopes, want := range map[string][2]bool{ // may, and may call it as it is
		"math/add@" + is:                      {true, true},
		"/math/add@" + is:                     {true, true},
		"math/add@" + is1:                     {true, false},
		"math/add@" + is1 + " math/add@" + is: {true, true},
		"math/add@" + is1 + " math/sub@" + is: {true, false},
		"math/sub@" + is:                      {false, false},
		"math@" + is:                          {false, false},
		"math/add/deep@" + is + " text":       {false, false},
		"math/add@" + is1 + " math/*":         {true, true}, // scopes add up; package scope refuses such a pair in one token
	} {
		p, err := wasmtools.NewPrincipal("ci", "test", strings.Fields(scopes)...)
		if err != nil {
			t.Fatal(scopes, err)
		}
		if got := [2]bool{p.May("/math/add"), p.MayCall(&route)}; got != want {
			t.Errorf("%s: got %v, want %v", scopes, got, want)
		}
		if p.MayAll() || strings.Join(p.Scopes(), " ") != scopes {
			t.Errorf("%s: got %t, %q", scopes, p.MayAll(), p.Scopes())
		}
		if p.May("/math/add@"+is) && !p.May("/math/x") {
			t.Errorf("%s: it may call a path with a fingerprint", scopes)
		}
	}
	if (*wasmtools.Principal)(nil).MayCall(&route) || !wasmtools.Everybody().MayCall(&route) {
		t.Error("nobody may call it, or everybody may not")
	}
	if err := table.Replace([]*wasmtools.Tool{&other}, nil); err != nil {
		t.Fatal(err)
	}
	if now, _ := table.Lookup("/math/add"); route.Fingerprint() != is || now.Fingerprint() != is1 {
		t.Errorf("the fingerprints are %s and %s, want %s and %s", route.Fingerprint(), now.Fingerprint(), is, is1)
	}
}

// BenchmarkMayCall measures a call with a fingerprint and one without.
func BenchmarkMayCall(b *testing.B) {
	add := &wasmtools.Tool{Namespace: "math", Name: "add", Description: "Adds.", Parameters: schema.MustCompile(`{"type":"object"}`), Caller: wasmtools.CallerFunc(nil)}
	table, err := wasmtools.NewRouteTable(add)
	if err != nil {
		b.Fatal(err)
	}
	route, _ := table.Lookup("/math/add")
	for _, c := range []struct{ name, scope string }{{"all", "*"}, {"pattern", "math/*"}, {"fingerprint", "math/add@" + add.Fingerprint()}} {
		p, err := wasmtools.NewPrincipal("ci", "test", c.scope)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(c.name+"/May", func(b *testing.B) {
			for b.Loop() {
				p.May(route.Path)
			}
		})
		b.Run(c.name+"/MayCall", func(b *testing.B) {
			for b.Loop() {
				p.MayCall(&route)
			}
		})
	}
}

func TestPrincipalRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ name, origin, scope, want string }{
		"no name":                      {"", "test", "*", "principal's name: it is empty"},
		"a long name":                  {strings.Repeat("x", wasmtools.MaxPrincipalName+1), "test", "*", "it has 129 bytes; at most 128 are allowed"},
		"a line feed":                  {"ci\nadmin", "test", "*", "can't be printed"},
		"a direction":                  {"ci\u202eadmin", "test", "*", "can't be printed"},
		"broken text":                  {"ci\xff", "test", "*", "can't be printed"},
		"no origin":                    {"ci", "", "*", `origin of principal "ci": it is empty`},
		"an empty scope":               {"ci", "test", "", `scope of principal "ci": the pattern is empty`},
		"a pattern with a fingerprint": {"ci", "test", "math/*@" + strings.Repeat("0", 64), "a pattern with * can't have one"},
		"a bad scope":                  {"ci", "test", "math add", `scope of principal "ci"`},
	} {
		p, err := wasmtools.NewPrincipal(test.name, test.origin, test.scope)
		if p != nil || err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v, %v, want %q", name, p, err, test.want)
		}
	}
}

func TestMayAllocatesNothing(t *testing.T) {
	p, err := wasmtools.NewPrincipal("ci", "test", "text", "**/add")
	if err != nil {
		t.Fatal(err)
	}
	route := wasmtools.Route{Path: "/math/deep/add"}
	if n := testing.AllocsPerRun(100, func() { p.May("/math/deep/add"); p.MayCall(&route) }); n != 0 {
		t.Errorf("got %v allocations, want none", n)
	}
}

// lines is a listener that keeps all lines.
type lines []string

func (l *lines) Log(level slog.Level, source, line string) {
	*l = append(*l, level.String()+" "+source+": "+line)
}

func (l *lines) Progress(done, total float64, message string) {
	*l = append(*l, fmt.Sprintf("%v of %v %s", done, total, message))
}

// TestToolKnowsItsCall lets a Go function find out who calls, and log something before it returns.
func TestToolKnowsItsCall(t *testing.T) {
	t.Parallel()
	tool := gotool.NewWithCall("who", "Tell who calls.", func(_ context.Context, call *wasmtools.Call, in struct{}) (string, error) {
		call.Log(slog.LevelWarn, "looking")
		return call.Principal.String(), nil
	})
	var heard lines
	for _, listener := range []wasmtools.Listener{&heard, nil} {
		got, err := tool.Call(t.Context(), &wasmtools.Call{Arguments: []byte("{}"), Principal: wasmtools.Self(), Listener: listener})
		if string(got) != `"process"` || err != nil {
			t.Errorf("got %s, %v", got, err)
		}
	}
	if got := strings.Join(heard, "; "); got != "WARN log: looking" {
		t.Errorf("heard %s", got)
	}
}

// TestRoles checks that a principal has only the roles that it was given, and none from its scopes.
func TestRoles(t *testing.T) {
	t.Parallel()
	p, err := wasmtools.NewPrincipal("ci", "test", "*", "admin")
	if err != nil {
		t.Fatal(err)
	}
	admin, err := p.WithRoles(wasmtools.RoleAdmin, "metrics")
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		principal *wasmtools.Principal
		want      bool
	}{
		"every tool and a scope of that name": {p, false}, "with the role": {admin, true}, "everybody": {wasmtools.Everybody(), false},
		"the process": {wasmtools.Self(), false}, "nobody": {wasmtools.Nobody(), false}, "nil": {nil, false},
	} {
		if got := test.principal.Has(wasmtools.RoleAdmin); got != test.want || test.principal.Has("") {
			t.Errorf("%s: has the role: %t, want %t", name, got, test.want)
		}
	}
	if !slices.Equal(admin.Roles(), []string{"admin", "metrics"}) || admin.String() != "ci" || !admin.MayAll() {
		t.Errorf("got %s with %q and %q", admin, admin.Roles(), admin.Scopes())
	}
	admin.Roles()[0] = "changed"
	if again, err := admin.WithRoles(); err != nil || again.Has(wasmtools.RoleAdmin) || !admin.Has(wasmtools.RoleAdmin) {
		t.Errorf("with the roles removed: got %q from %q (%v)", again.Roles(), admin.Roles(), err)
	}
	for _, role := range []string{"", "a\nb", strings.Repeat("x", wasmtools.MaxPrincipalName+1)} {
		if _, err := p.WithRoles(role); err == nil {
			t.Errorf("%.10q is a role", role)
		}
	}
	if nobody := wasmtools.Nobody(); nobody.May("/math/add") || nobody.MayAll() || nobody.Origin() != wasmtools.OriginOpen {
		t.Error("nobody may call a tool")
	}
}
