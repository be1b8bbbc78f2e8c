// Package peer runs the guests with other runtimes: plain wazero, and Extism's SDK.
package peer

import (
	"context"
	"errors"
	"fmt"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
)

// Wazero is plain wazero, with the functions of ABI 1 and wazero's own WASI. It is safe for concurrent use.
type Wazero struct {
	runtime wazero.Runtime
	code    wazero.CompiledModule
}

// NewWazero compiles a module. With closeOnDone, a call can be ended through its context.
func NewWazero(ctx context.Context, module []byte, closeOnDone bool) (*Wazero, error) {
	w := &Wazero{runtime: wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfig().WithCloseOnContextDone(closeOnDone))}
	if err := w.prepare(ctx, module); err != nil {
		return nil, errors.Join(err, w.Close(ctx))
	}
	return w, nil
}

func (w *Wazero) prepare(ctx context.Context, module []byte) error {
	if _, err := wasi_snapshot_preview1.Instantiate(ctx, w.runtime); err != nil {
		return err
	}
	i32 := api.ValueTypeI32
	host := w.runtime.NewHostModuleBuilder("toolsrv_v1")
	offer := func(name string, params, results []api.ValueType, f api.GoModuleFunc) {
		host.NewFunctionBuilder().WithGoModuleFunction(f, params, results).Export(name)
	}
	offer("input_size", nil, []api.ValueType{i32}, func(ctx context.Context, _ api.Module, stack []uint64) {
		stack[0] = uint64(len(exchangeOf(ctx).input))
	})
	offer("input_read", []api.ValueType{i32}, nil, func(ctx context.Context, m api.Module, stack []uint64) {
		if !m.Memory().Write(uint32(stack[0]), exchangeOf(ctx).input) {
			panic("out of bounds")
		}
	})
	offer("output_write", []api.ValueType{i32, i32}, nil, func(ctx context.Context, m api.Module, stack []uint64) {
		view, ok := m.Memory().Read(uint32(stack[0]), uint32(stack[1]))
		if !ok {
			panic("out of bounds")
		}
		e := exchangeOf(ctx)
		e.output = append([]byte(nil), view...)
	})
	none := func(context.Context, api.Module, []uint64) {}
	offer("fail", []api.ValueType{i32, i32}, nil, none)
	offer("log", []api.ValueType{i32, i32, i32}, nil, none)
	if _, err := host.Instantiate(ctx); err != nil {
		return err
	}
	var err error
	w.code, err = w.runtime.CompileModule(ctx, module)
	return err
}

// Close frees everything.
func (w *Wazero) Close(ctx context.Context) error { return w.runtime.Close(ctx) }

// An exchange has the input and the output of a call.
type exchange struct{ input, output []byte }

type exchangeKey struct{}

func exchangeOf(ctx context.Context) *exchange { return ctx.Value(exchangeKey{}).(*exchange) }

// An Instance is one instance of the module. It is not safe for concurrent use.
type Instance struct {
	module api.Module
	call   api.Function
	exchange
}

// New makes an instance and initialises it.
func (w *Wazero) New(ctx context.Context) (*Instance, error) {
	module, err := w.runtime.InstantiateModule(ctx, w.code, wazero.NewModuleConfig().WithName("").WithStartFunctions("_initialize"))
	if err != nil {
		return nil, err
	}
	return &Instance{module: module, call: module.ExportedFunction("toolsrv_call")}, nil
}

// Warm runs toolsrv_warm, if the guest has it.
func (i *Instance) Warm(ctx context.Context) error {
	f := i.module.ExportedFunction("toolsrv_warm")
	if f == nil {
		return nil
	}
	_, err := f.Call(context.WithValue(ctx, exchangeKey{}, &i.exchange))
	return err
}

// Call calls a tool and returns a copy of its output.
func (i *Instance) Call(ctx context.Context, tool int32, input []byte) ([]byte, error) {
	i.input, i.output = input, nil
	results, err := i.call.Call(context.WithValue(ctx, exchangeKey{}, &i.exchange), uint64(uint32(tool)))
	if err != nil {
		return nil, err
	}
	if results[0] != 0 {
		return nil, fmt.Errorf("the guest returned %d", results[0])
	}
	return i.output, nil
}

// Close frees the instance.
func (i *Instance) Close(ctx context.Context) error { return i.module.Close(ctx) }

// CallFresh calls a tool in an instance that is made for this call.
func (w *Wazero) CallFresh(ctx context.Context, tool int32, input []byte) ([]byte, error) {
	instance, err := w.New(ctx)
	if err != nil {
		return nil, err
	}
	output, err := instance.Call(ctx, tool, input)
	return output, errors.Join(err, instance.Close(ctx))
}
