package wasmbin_test

import (
	"context"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/toolsrv/toolsrv/runtime/wasmbin"
)

// A host runs modules, rewritten or not, with what the rewriter asks of the host.
type host struct {
	wazero.Runtime
	slice   int32 // of fuel
	refills int
	most    int // refills until it panics, 0 for no bound
	onSlice func()
}

const (
	errStopped  = hostError("stopped")
	errOverflow = hostError("call stack used up")
)

type hostError string

func (e hostError) Error() string { return string(e) }

func newHost(t testing.TB, config wazero.RuntimeConfig) *host {
	t.Helper()
	h := &host{Runtime: wazero.NewRuntimeWithConfig(t.Context(), config), slice: wasmbin.FirstSlice}
	t.Cleanup(func() {
		if err := h.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	i32 := []api.ValueType{api.ValueTypeI32}
	_, err := h.NewHostModuleBuilder(wasmbin.MeterModule).
		NewFunctionBuilder().WithGoFunction(api.GoFunc(func(_ context.Context, stack []uint64) {
		if h.refills++; h.refills == h.most {
			panic(errStopped)
		}
		if h.onSlice != nil {
			h.onSlice()
		}
		stack[0] = api.EncodeI32(h.slice)
	}), i32, i32).Export(wasmbin.RefillFunc).
		NewFunctionBuilder().WithGoFunction(api.GoFunc(func(context.Context, []uint64) {
		panic(errOverflow)
	}), nil, nil).Export(wasmbin.OverflowFunc).
		Instantiate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// instantiate makes an instance of a rewritten module, as its sandbox does.
func (h *host) instantiate(ctx context.Context, name string, r *wasmbin.Rewritten, stack int32) (api.Module, error) {
	compiled, err := h.CompileModule(ctx, r.Module)
	if err != nil {
		return nil, err
	}
	return h.start(ctx, compiled, name, r, stack)
}

func (h *host) start(ctx context.Context, compiled wazero.CompiledModule, name string, r *wasmbin.Rewritten, stack int32) (api.Module, error) {
	m, err := h.InstantiateModule(ctx, compiled, wazero.NewModuleConfig().WithName(name).WithStartFunctions())
	if err != nil {
		return nil, err
	}
	m.ExportedGlobal(wasmbin.FuelGlobal).(api.MutableGlobal).Set(uint64(uint32(h.slice)))
	m.ExportedGlobal(wasmbin.StackGlobal).(api.MutableGlobal).Set(uint64(uint32(stack)))
	for _, d := range r.Data {
		if !m.Memory().Write(d.Offset, d.Content) {
			return m, hostError("data segment out of bounds")
		}
	}
	if r.Start != "" {
		_, err = m.ExportedFunction(r.Start).Call(ctx)
	}
	return m, err
}
