package toolset_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/mcp/toolset"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/schema"
)

var parameters = schema.MustCompile(`{"type":"object","properties":{"n":{"type":"integer","default":7}},"additionalProperties":false}`)

// tool returns a tool at a path such as "math/add".
func tool(path string, f wasmtools.CallerFunc) *wasmtools.Tool {
	namespace, name := "", path
	if i := strings.LastIndexByte(path, '/'); i >= 0 {
		namespace, name = path[:i], path[i+1:]
	}
	return &wasmtools.Tool{Namespace: namespace, Name: name, Description: "A tool.", Caller: f, Parameters: parameters}
}

func echo(_ context.Context, call *wasmtools.Call) ([]byte, error) { return call.Arguments, nil }

// ends returns a function that ends each call with the given result and error.
func ends(result string, err error) wasmtools.CallerFunc {
	return func(context.Context, *wasmtools.Call) ([]byte, error) { return []byte(result), err }
}

func tableOf(t testing.TB, tools ...*wasmtools.Tool) *wasmtools.RouteTable {
	t.Helper()
	table, err := wasmtools.NewRouteTable(tools...)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

func setOf(t testing.TB, table *wasmtools.RouteTable, o toolset.Options) *toolset.Set {
	t.Helper()
	s := toolset.New(table, o)
	t.Cleanup(func() { _ = s.Close() })
	return s
}

func principal(t testing.TB, scopes ...string) *wasmtools.Principal {
	t.Helper()
	p, err := wasmtools.NewPrincipal("test", "test", scopes...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// names returns the names of the tools in a list, page by page.
func names(t testing.TB, v *toolset.View, era toolset.Era) (all []string) {
	t.Helper()
	for cursor := ""; ; {
		page, err := v.List(cursor, era)
		if err != nil {
			t.Fatal(err)
		}
		var tools []struct{ Name string }
		if err := json.Unmarshal(page.Tools, &tools); err != nil {
			t.Fatal(err)
		}
		for _, tool := range tools {
			all = append(all, tool.Name)
		}
		if cursor = page.Next; cursor == "" {
			return all
		}
	}
}

// answer returns a result as a JSON object.
func answer(r toolset.Result, era toolset.Era) string {
	return "{" + string(r.Append(nil, era, "")) + "}"
}

func TestList(t *testing.T) {
	t.Parallel()
	table := tableOf(t, tool("math/x/deep", echo), tool("math/sub", echo), tool("math-x", echo), tool("top", echo), tool("math/off", echo), tool("mathx/a", echo))
	if err := table.Disable("/math/off", ""); err != nil {
		t.Fatal(err)
	}
	set := setOf(t, table, toolset.Options{})
	for _, test := range []struct {
		namespace string
		principal *wasmtools.Principal
		want      string
	}{
		{"", wasmtools.Everybody(), "math-sub math-x math-x-deep mathx-a top"},
		{"math", wasmtools.Everybody(), "math-sub math-x-deep"},
		{"math/x", wasmtools.Everybody(), "math-x-deep"},
		{"mat", wasmtools.Everybody(), ""},
		{"no such/../thing", wasmtools.Everybody(), ""},
		{"", principal(t, "math"), "math-sub math-x-deep"},
		{"math/x", principal(t, "math/*"), "math-x-deep"},
		{"math", principal(t, "top"), ""},
		{"", principal(t), ""},
		{"", nil, ""},
	} {
		for _, era := range []toolset.Era{toolset.Legacy, toolset.Modern} {
			if got := strings.Join(names(t, set.View(test.namespace, test.principal), era), " "); got != test.want {
				t.Errorf("%q of %v: got %q, want %q", test.namespace, test.principal, got, test.want)
			}
		}
	}
}

func TestPages(t *testing.T) {
	t.Parallel()
	var tools []*wasmtools.Tool
	for i := range 2500 {
		tools = append(tools, tool(fmt.Sprintf("t%04d", i), echo))
	}
	table := tableOf(t, tools...)
	set := setOf(t, table, toolset.Options{Search: toolset.SearchNever})
	view := set.View("", wasmtools.Everybody())
	if got := names(t, view, toolset.Legacy); len(got) != 2500 || got[0] != "t0000" || got[2499] != "t2499" {
		t.Fatalf("got %d tools", len(got))
	}
	page, err := view.List("", toolset.Legacy)
	if err != nil {
		t.Fatal(err)
	}
	// A cursor keeps its meaning when tools have gone, even the tool that it names.
	if err := table.Replace(tools[10:999], nil); err != nil {
		t.Fatal(err)
	}
	if err := table.Replace(append(tools[10:999:999], tools[1005:]...), nil); err != nil {
		t.Fatal(err)
	}
	rest, err := set.View("", wasmtools.Everybody()).List(page.Next, toolset.Legacy)
	if err != nil || !strings.HasPrefix(string(rest.Tools), `[{"name":"t1005"`) || !strings.Contains(string(rest.Tools), `"t2004"`) || strings.Contains(string(rest.Tools), `"t2005"`) {
		t.Errorf("got %.60s, %v", rest.Tools, err)
	}
	for _, cursor := range []string{"x", "AAAA", "t1000", page.Next[1:], page.Next + "A", page.Next + "=", page.Next + "\n", strings.Repeat("A", 1000), "\x00"} {
		_, err := view.List(cursor, toolset.Legacy)
		if e, ok := errors.AsType[*toolset.Error](err); !ok || e.Code != toolset.CodeInvalidParams {
			t.Errorf("cursor %q: got %v, want invalid params", cursor, err)
		}
	}
}

// TestKeptPages checks that many callers who see different parts of a large list take no more memory than a few do.
func TestKeptPages(t *testing.T) {
	t.Parallel()
	var tools []*wasmtools.Tool
	var scopes []string
	for i := range 100 {
		large := tool(fmt.Sprintf("t%02d", i), echo)
		large.Description = strings.Repeat("x", 20<<10)
		tools, scopes = append(tools, large), append(scopes, large.Name)
	}
	set := setOf(t, tableOf(t, tools...), toolset.Options{})
	kept := 0
	for i := range 50 {
		v := set.View("", principal(t, scopes[i:]...))
		first, err := v.List("", toolset.Modern)
		if err != nil {
			t.Fatal(err)
		}
		again, err := v.List("", toolset.Modern)
		if err != nil || len(first.Tools) < 50*20<<10 || string(first.Tools) != string(again.Tools) {
			t.Fatalf("got %d bytes, then %d: %v", len(first.Tools), len(again.Tools), err)
		}
		if first == again {
			kept += len(first.Tools)
		}
	}
	if kept == 0 || kept > 64<<20 {
		t.Errorf("%d bytes are kept", kept)
	}
}

func TestCall(t *testing.T) {
	t.Parallel()
	secret := errors.New("hunter2")
	table := tableOf(t, tool("echo", echo), tool("off", echo), tool("secret/plan", echo),
		tool("lines", ends("{\n\"a\":\r\n\"b\\n\"}\n", nil)),
		tool("word", ends(` "a \"b\"\n\/" `, nil)), tool("number", ends("3", nil)), tool("list", ends("[1]", nil)),
		tool("fail/own", ends("", &wasmtools.Error{Code: wasmtools.CodeToolError, Message: "2 are left", ToolCode: "few", Data: json.RawMessage(`{"left":2}`)})),
		tool("fail/trap", ends("", &wasmtools.Error{Code: wasmtools.CodeToolTrapped, Err: secret})),
		tool("fail/missing", ends("", &wasmtools.Error{Code: wasmtools.CodeNotFound, Message: "No such row"})),
		tool("fail/internal", ends("", &wasmtools.Error{Code: wasmtools.CodeInternal, Message: "hunter2", Err: secret})),
		tool("fail/empty", ends("", nil)))
	if err := table.Disable("/off", "being repaired"); err != nil {
		t.Fatal(err)
	}
	view := setOf(t, table, toolset.Options{}).View("", principal(t, "*"))
	for _, test := range []struct {
		name, arguments string
		modern, legacy  string // legacy is empty if it is the same as modern
	}{
		{"echo", `{"n":1}`, `{"content":[{"type":"text","text":"{\"n\":1}"}],"structuredContent":{"n":1}}`, ""},
		{"echo", ``, `{"content":[{"type":"text","text":"{\"n\":7}"}],"structuredContent":{"n":7}}`, ""},
		{"lines", `{}`, `{"content":[{"type":"text","text":"{\n\"a\":\u000d\n\"b\\n\"}\n"}],"structuredContent":{ "a":  "b\n"} }`, ""},
		{"word", `{}`, `{"content":[{"type":"text","text":"a \"b\"\n\/"}],"structuredContent": "a \"b\"\n\/" }`, `{"content":[{"type":"text","text":"a \"b\"\n\/"}]}`},
		{"number", `{}`, `{"content":[{"type":"text","text":"3"}],"structuredContent":3}`, `{"content":[{"type":"text","text":"3"}]}`},
		{"list", `{}`, `{"content":[{"type":"text","text":"[1]"}],"structuredContent":[1]}`, `{"content":[{"type":"text","text":"[1]"}]}`},
		{"off", `{}`, `{"content":[{"type":"text","text":"Tool /off is disabled: being repaired"}],"isError":true,"_meta":{"io.github.toolsrv/error":{"code":"tool_disabled","detail":"Tool /off is disabled: being repaired"}}}`, ""},
		{"fail-own", `{}`, `{"content":[{"type":"text","text":"2 are left\n{\"code\":\"few\",\"data\":{\"left\":2}}"}],"isError":true,"_meta":{"io.github.toolsrv/error":{"code":"tool_error","detail":"2 are left","error":{"code":"few","data":{"left":2}}}}}`, ""},
		{"fail-trap", `{}`, `{"content":[{"type":"text","text":"The tool crashed"}],"isError":true,"_meta":{"io.github.toolsrv/error":{"code":"tool_trapped","detail":"The tool crashed"}}}`, ""},
		{"fail-missing", `{}`, `{"content":[{"type":"text","text":"No such row"}],"isError":true,"_meta":{"io.github.toolsrv/error":{"code":"not_found","detail":"No such row"}}}`, ""},
		{"fail-empty", `{}`, `{"content":[{"type":"text","text":"The tool returned no result"}],"isError":true,"_meta":{"io.github.toolsrv/error":{"code":"tool_bad_output","detail":"The tool returned no result"}}}`, ""},
	} {
		r, err := view.Call(t.Context(), test.name, &wasmtools.Call{Arguments: []byte(test.arguments), Principal: principal(t, "*")})
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if got := answer(r, toolset.Modern); got != test.modern {
			t.Errorf("%s: got\n%s, want\n%s", test.name, got, test.modern)
		}
		if test.legacy == "" {
			test.legacy = test.modern
		}
		if got := answer(r, toolset.Legacy); got != test.legacy {
			t.Errorf("%s: got\n%s, want\n%s", test.name, got, test.legacy)
		}
	}
	_, err := view.Call(t.Context(), "fail-internal", &wasmtools.Call{Principal: principal(t, "*")})
	if e, ok := errors.AsType[*toolset.Error](err); !ok || e.Code != toolset.CodeInternal || e.Message != "Internal error" {
		t.Errorf("internal: got %v", err)
	}
}

// TestWrongArguments checks that the error says which member is wrong, and what was expected.
func TestWrongArguments(t *testing.T) {
	t.Parallel()
	add := tool("add", echo)
	add.Parameters = schema.MustCompile(`{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"array","items":{"type":"object","properties":{"c":{"type":"integer"}}}}},"required":["a"]}`)
	view := setOf(t, tableOf(t, add), toolset.Options{}).View("", wasmtools.Everybody())
	for arguments, want := range map[string]string{
		`{}`:                      "The arguments do not fit the tool's schema:\n- a: Field required",
		`{"a":1,"b":[{"c":"x"}]}`: "The arguments do not fit the tool's schema:\n- b[0].c: Input should be a valid integer (got \"x\")",
		`{"a":1,"a":2}`:           "The arguments do not fit the tool's schema:\n- JSON decode error at byte 7 of the arguments: Duplicate property name",
		`{"a":"\ud83d"}`:          "The arguments do not fit the tool's schema:\n- JSON decode error at byte 6 of the arguments: Lone surrogate in \\uXXXX escape",
		`[]`:                      "(got [])",
	} {
		r, err := view.Call(t.Context(), "add", &wasmtools.Call{Arguments: []byte(arguments), Principal: wasmtools.Everybody()})
		if err != nil || r.Failed() == nil || r.Failed().Code != wasmtools.CodeInvalidArguments {
			t.Fatalf("%s: %v", arguments, err)
		}
		if got := r.Blocks()[0].Text; got != want && !strings.Contains(got, want) {
			t.Errorf("%s: got %q, want %q", arguments, got, want)
		}
		if got := answer(r, toolset.Modern); !strings.Contains(got, `"code":"invalid_arguments","detail":[{"type":`) {
			t.Errorf("%s: got %s, which has no violations", arguments, got)
		}
	}
}

// TestHidden checks that a tool out of scope or of another namespace can't be told from one that does not exist.
func TestHidden(t *testing.T) {
	t.Parallel()
	p := principal(t, "math")
	table := tableOf(t, tool("secret/plan", echo), tool("math/plan", echo), tool("math/off", echo))
	if err := errors.Join(table.Disable("/secret/plan", "hunter2")); err != nil {
		t.Fatal(err)
	}
	view := setOf(t, table, toolset.Options{}).View("", p)
	message := func(name string) string {
		_, err := view.Call(t.Context(), name, &wasmtools.Call{Principal: p, Arguments: []byte("not JSON")})
		e, ok := errors.AsType[*toolset.Error](err)
		if !ok || e.Code != toolset.CodeInvalidParams {
			t.Fatalf("%s: got %v", name, err)
		}
		return strings.ReplaceAll(e.Message, name, "NAME")
	}
	if a, b := message("secret-plan"), message("secret-plam"); a != b {
		t.Errorf("got %q and %q", a, b)
	}
	if got := message(strings.Repeat("x", 1000)); len(got) > 200 {
		t.Errorf("a long name is repeated whole: %q", got)
	}
}

// TestChanges checks that listeners are told of a change, and that the edition of a view changes only with its list.
func TestChanges(t *testing.T) {
	t.Parallel()
	table := tableOf(t, tool("math/a", echo), tool("text/b", echo))
	set := setOf(t, table, toolset.Options{})
	told := make(chan struct{}, 100)
	unsubscribe := set.Subscribe(func() { told <- struct{}{} })
	editions := func() [3]uint64 {
		return [3]uint64{set.View("", wasmtools.Everybody()).Edition(), set.View("math", wasmtools.Everybody()).Edition(), set.View("", principal(t, "math")).Edition()}
	}
	before := editions()
	if err := table.Disable("/text/b", ""); err != nil {
		t.Fatal(err)
	}
	<-told
	after := editions()
	if after[0] == before[0] || after[1] != before[1] || after[2] != before[2] {
		t.Errorf("editions were %x and are %x", before, after)
	}
	if err := table.Enable("/text/b"); err != nil {
		t.Fatal(err)
	}
	<-told
	if got := editions(); got != before {
		t.Errorf("editions were %x and are %x", before, got)
	}
	unsubscribe()
	if err := set.Close(); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(table.Disable("/math", ""), set.Close()); err != nil {
		t.Fatal(err)
	}
	if got := names(t, set.View("", wasmtools.Everybody()), toolset.Modern); len(got) != 2 {
		t.Errorf("a closed set follows its table: %q", got)
	}
}
