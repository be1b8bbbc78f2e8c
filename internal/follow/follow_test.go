package follow_test

import (
	"context"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/follow"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/schema"
)

// TestMadeOfTools checks that the results for tools are kept for as long as the tools stay.
func TestMadeOfTools(t *testing.T) {
	t.Parallel()
	newTool := func(name string) *wasmtools.Tool {
		return &wasmtools.Tool{Namespace: "x", Name: name, Description: "A tool.", Parameters: schema.MustCompile(`{"type":"object"}`),
			Caller: wasmtools.CallerFunc(func(context.Context, *wasmtools.Call) ([]byte, error) { return []byte("1"), nil })}
	}
	a, b, c, other := newTool("a"), newTool("b"), newTool("c"), newTool("b")
	var before *wasmtools.Generation
	var made []string
	table, err := wasmtools.NewRouteTable()
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name   string
		tools  []*wasmtools.Tool
		asked  string
		want   string
		change follow.Change
	}{
		{"the first generation", nil, "", "", follow.OtherPaths},
		{"nothing again", nil, "", "", follow.SameTools},
		{"two tools", []*wasmtools.Tool{a, c}, "ac", "ac", follow.OtherPaths},
		{"the same tools", []*wasmtools.Tool{a, c}, "", "ac", follow.SameTools},
		{"one more", []*wasmtools.Tool{a, b, c}, "b", "abc", follow.OtherPaths},
		{"one replaced", []*wasmtools.Tool{a, other, c}, "b", "abc", follow.SamePaths},
		{"one fewer", []*wasmtools.Tool{other, c}, "", "bc", follow.OtherPaths},
		{"as many tools as before, but others", []*wasmtools.Tool{a, c}, "a", "ac", follow.OtherPaths},
	} {
		if err := table.Replace(test.tools, nil); err != nil {
			t.Fatal(err)
		}
		asked := ""
		next, change := follow.MadeOfTools(table.Current(), before, made, func(tool *wasmtools.Tool) string {
			asked += tool.Name
			return tool.Name
		})
		if got := strings.Join(next, ""); got != test.want || asked != test.asked || change != test.change {
			t.Errorf("%s: got %q of which %q were made anew, and the change %d; want %q, %q, %d", test.name, got, asked, change, test.want, test.asked, test.change)
		}
		before, made = table.Current(), next
	}
}
