package sandbox_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

// TestStateLeaks makes calls that count in every kind of state, and in between calls that change state and break. Each call must count 1: otherwise
// state has come through.
// Proves: Nothing is left of a call
func TestStateLeaks(t *testing.T) {
	t.Parallel()
	for _, fixtureName := range []string{"good/leaky", "good/fresh"} {
		t.Run(fixtureName, func(t *testing.T) {
			t.Parallel()
			e := sandboxtest.Engine(t, sandbox.Config{Paranoid: true})
			p := sandboxtest.Load(t, e, testkit.Fixture(t, "wat/"+fixtureName))
			count, breaks := int32(16), map[int32]sandbox.Outcome{9: sandbox.ToolTrapped, 10: sandbox.ToolTrapped, 11: sandbox.ToolTrapped, 15: sandbox.ToolFuel}
			if fixtureName == "good/fresh" {
				count, breaks = 6, nil
			}
			var tools []*sandbox.Tool
			for index := range count {
				limits := limits.Limits{Concurrency: 1, Fuel: 2_000_000, Timeout: time.Minute}
				tools = append(tools, p.Tool("x", index, limits))
			}
			r := rand.New(rand.NewPCG(1, 2))
			for range 1000 {
				index := r.Int32N(count)
				out, err := tools[index].Call(t.Context(), sandbox.CallSpec{})
				if outcome, broken := breaks[index]; broken {
					wantError(t, err, outcome, "")
				} else if err != nil || string(out) != "1" {
					t.Fatalf("tool %d: got %s, %v, want 1", index, out, err)
				}
			}
		})
	}
}

// TestAdapted has guests that take more memory when they start: all that they get, or some that they can do without. The state that depends on one
// tool's limit must not be the state in which another tool's calls begin, whichever was called first.
// Proves: Nothing is left of a call
func TestAdapted(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		fixture string
		pages   map[int64]string // by limit
	}{
		{"hostile/adapts", map[int64]string{3: "3", 7: "7", 5: "5"}},
		{"good/greedy", map[int64]string{3: "1", 4: "1", 5: "5", 8: "5"}},
	} {
		for range 3 {
			p := sandboxtest.Load(t, sandboxtest.Engine(t, sandbox.Config{}), testkit.Fixture(t, "wat/"+test.fixture))
			for range 2 {
				for pages, want := range test.pages { // in any order
					out, err := p.Tool("x", 0, limits.Limits{Memory: pages << 16}).Call(t.Context(), sandbox.CallSpec{})
					if err != nil || string(out) != want {
						t.Errorf("%s, with %d pages: got %s, %v, want %s", test.fixture, pages, out, err, want)
					}
				}
			}
		}
	}
}

// TestFuelOfStart has a module whose start takes more fuel than a call may use.
func TestFuelOfStart(t *testing.T) {
	t.Parallel()
	for _, pages := range []int64{8, 3} { // with 8 pages, the module starts once; with 3, it starts for each call
		p := sandboxtest.Load(t, sandboxtest.Engine(t, sandbox.Config{}), testkit.Fixture(t, "wat/good/greedy"))
		for range 2 {
			out, err := p.Tool("x", 0, limits.Limits{Memory: pages << 16, Fuel: 1000}).Call(t.Context(), sandbox.CallSpec{})
			if err != nil || len(out) != 1 {
				t.Errorf("with %d pages: got %s, %v", pages, out, err)
			}
		}
	}
}

// TestLimitsOfTools calls two tools of one program alternately. Each has its own limits.
// Proves: Limits hold, one by one and in sum
func TestLimitsOfTools(t *testing.T) {
	t.Parallel()
	p := sandboxtest.Load(t, sandboxtest.Engine(t, sandbox.Config{}), testkit.Fixture(t, "wat/good/leaky"))
	small := p.Tool("small", 7, limits.Limits{Memory: 4 << 16})
	tiny := p.Tool("tiny", 0, limits.Limits{Memory: 3 << 16})
	for range 3 {
		for _, pages := range []int64{5, 64} {
			out, err := p.Tool("large", 7, limits.Limits{Memory: pages << 16}).Call(t.Context(), sandbox.CallSpec{})
			if err != nil || string(out) != "1" {
				t.Errorf("%d pages: got %s, %v, want 1", pages, out, err)
			}
		}
		if out, err := small.Call(t.Context(), sandbox.CallSpec{}); err != nil || string(out) != "9" {
			t.Errorf("4 pages: got %s, %v, want 9, the answer to a refusal", out, err)
		}
		_, err := tiny.Call(t.Context(), sandbox.CallSpec{})
		wantError(t, err, sandbox.ToolMemory, "needs 256 KiB of memory to start; its limit is 192 KiB")
	}
}

// TestResetHammer calls tools that count, grow and break from many goroutines.
// Proves: Nothing is left of a call
func TestResetHammer(t *testing.T) {
	t.Parallel()
	e := sandboxtest.Engine(t, sandbox.Config{Paranoid: true, IdleTime: time.Millisecond, Memory: 8 << 20})
	p := sandboxtest.Load(t, e, testkit.Fixture(t, "wat/good/leaky"))
	limits := limits.Limits{Concurrency: 4, Queue: 100, Fuel: 500_000, Timeout: time.Minute}
	var wait sync.WaitGroup
	for worker := range 8 {
		wait.Go(func() {
			for n := range 60 {
				index := int32((worker + n) % 16)
				out, err := p.Tool("x", index, limits).Call(t.Context(), sandbox.CallSpec{})
				if breaks := index >= 9 && index <= 11 || index == 15; breaks && err == nil {
					t.Errorf("tool %d: got no error", index)
				} else if !breaks && (err != nil || string(out) != "1") {
					t.Errorf("tool %d: got %s, %v, want 1", index, out, err)
				}
			}
		})
	}
	wait.Wait()
}

// A plain is a module in unmodified wazero, with a new instance for every call. Our results are compared with it.
type plain struct {
	runtime wazero.Runtime
	code    wazero.CompiledModule
	input   []byte
	output  []byte
}

func newPlain(t testing.TB, module []byte) *plain {
	t.Helper()
	ctx := context.Background()
	p := &plain{runtime: wazero.NewRuntime(ctx)}
	t.Cleanup(func() { p.runtime.Close(ctx) })
	wasi_snapshot_preview1.MustInstantiate(ctx, p.runtime)
	_, err := p.runtime.NewHostModuleBuilder("toolsrv_v1").
		NewFunctionBuilder().WithFunc(func() uint32 { return uint32(len(p.input)) }).Export("input_size").
		NewFunctionBuilder().WithFunc(func(_ context.Context, m api.Module, at uint32) {
		if !m.Memory().Write(at, p.input) {
			panic("outside")
		}
	}).Export("input_read").
		NewFunctionBuilder().WithFunc(func(_ context.Context, m api.Module, at, length uint32) {
		b, ok := m.Memory().Read(at, length)
		if !ok {
			panic("outside")
		}
		p.output = append([]byte(nil), b...)
	}).Export("output_write").
		NewFunctionBuilder().WithFunc(func(context.Context, api.Module, uint32, uint32) {}).Export("fail").
		Instantiate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if p.code, err = p.runtime.CompileModule(ctx, module); err != nil {
		t.Fatal(err)
	}
	return p
}

// call returns the output, and whether the call ended well.
func (p *plain) call(index int32, input []byte) (string, bool) {
	ctx := context.Background()
	p.input, p.output = input, nil
	m, err := p.runtime.InstantiateModule(ctx, p.code, wazero.NewModuleConfig().WithName(""))
	if err != nil {
		return "", false
	}
	defer m.Close(ctx)
	results, err := m.ExportedFunction("toolsrv_call").Call(ctx, uint64(uint32(index)))
	if err != nil || results[0] != 0 {
		return "", false
	}
	return string(p.output), true
}

// FuzzCalls makes calls in any order, with any input. Each must return what a new instance in plain wazero returns.
// Proves: Nothing is left of a call
func FuzzCalls(f *testing.F) {
	type guest struct {
		plain *plain
		tools []*sandbox.Tool
	}
	e := sandboxtest.Engine(f, sandbox.Config{Paranoid: true})
	var guests []guest
	for _, g := range []struct {
		name  string
		tools int32
	}{{"good/leaky", 15}, {"good/small", 1}, {"good/echo", 3}, {"good/fresh", 6}} {
		module := testkit.Fixture(f, "wat/"+g.name)
		p := sandboxtest.Load(f, e, module)
		made := guest{plain: newPlain(f, module)}
		for index := range g.tools {
			made.tools = append(made.tools, p.Tool("x", index, limits.Limits{}))
		}
		guests = append(guests, made)
	}
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 0, 1, 2, 3})
	f.Add([]byte{9, 4, 9, 5, 9, 6, 9, 7, 7, 7, 8, 8})
	f.Add([]byte{64, 65, 128, 129, 130, 192, 193, 194, 195, 196, 197, 192, 193})
	f.Fuzz(func(t *testing.T, calls []byte) {
		for n, b := range calls[:min(len(calls), 64)] {
			g := &guests[b>>6]
			index := int32(b&63) % int32(len(g.tools))
			input := fmt.Appendf(nil, `[%d,"%x"]`, n, calls[n:min(len(calls), n+20)])
			want, wantOK := g.plain.call(index, input)
			got, err := g.tools[index].Call(t.Context(), sandbox.CallSpec{Input: input})
			if (err == nil) != wantOK || string(got) != want {
				t.Fatalf("call %d, guest %d, tool %d: got %s, %v, want %s, %t", n, b>>6, index, got, err, want, wantOK)
			}
		}
	})
}
