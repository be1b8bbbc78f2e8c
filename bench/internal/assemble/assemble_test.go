package assemble_test

import (
	"testing"

	"github.com/toolsrv/toolsrv/bench/internal/assemble"
	"github.com/toolsrv/toolsrv/internal/runtime/abi1"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

// TestModules checks that every kind of tool returns its input.
func TestModules(t *testing.T) {
	t.Parallel()
	engine, err := sandbox.New(t.Context(), sandbox.Config{Imports: abi1.Sets()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { engine.Close(t.Context()) })
	for _, c := range []struct {
		name string
		tool assemble.Tool
	}{
		{"small", assemble.Tool{}},
		{"waits", assemble.Tool{Wait: 1}},
		{"grows", assemble.Tool{Grow: 1 << 20}},
		{"logs", assemble.Tool{Lines: 2, Line: 10}},
		{"elements", assemble.Tool{Elements: []int{3, 4}}},
		{"passive", assemble.Tool{Passive: 1000}},
		{"live", assemble.Tool{Bodies: []assemble.Body{assemble.Live(3, 2)}}},
		{"straight", assemble.Tool{Bodies: []assemble.Body{assemble.Straight(9)}}},
		{"fills", assemble.Tool{Bodies: []assemble.Body{assemble.Fills(3, 2), assemble.Fills(1, 1)}}},
		{"table fills", assemble.Tool{Bodies: []assemble.Body{assemble.TableFills(2)}, Elements: []int{1}}},
		{"minima", assemble.Tool{Bodies: []assemble.Body{assemble.Minima(2)}}},
		{"locals", assemble.Tool{Bodies: []assemble.Body{assemble.Locals(3, 2)}}},
		{"moved", assemble.Tool{Bodies: []assemble.Body{assemble.Moved(3)}}},
		{"runs", assemble.Tool{Runs: true, Bodies: []assemble.Body{assemble.Locals(3, 2)}}},
		{"ordinary", assemble.Tool{Bodies: []assemble.Body{assemble.Ordinary(7)}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			c.tool.Name = "tool"
			module, err := c.tool.Module()
			if err != nil {
				t.Fatal(err)
			}
			program, err := engine.Load(module, abi1.Modules()...)
			if err != nil {
				t.Fatal(err)
			}
			defer program.Close()
			const input = `{"a": 1}`
			output, err := program.Tool("tool", 0, limits.Limits{}).Call(t.Context(), sandbox.CallSpec{Input: []byte(input)})
			if err != nil || string(output) != input {
				t.Errorf("got %q, %v, want %q", output, err, input)
			}
		})
	}
}
