package main

import (
	"context"
	"fmt"

	"github.com/toolsrv/toolsrv/bench/internal/guest"
	"github.com/toolsrv/toolsrv/bench/internal/measure"
	"github.com/toolsrv/toolsrv/internal/runtime/abi1"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

// ours is the sandbox as a server would use it, with one program and the default limits.
type ours struct {
	engine  *sandbox.Engine
	program *sandbox.Program
}

func newOurs(ctx context.Context, module []byte) (*ours, error) {
	engine, err := sandbox.New(ctx, sandbox.Config{Imports: abi1.Sets()})
	if err != nil {
		return nil, err
	}
	program, err := engine.Load(module, abi1.Modules()...)
	if err == nil {
		err = program.Compile(ctx)
	}
	if err != nil {
		engine.Close(ctx)
		return nil, err
	}
	return &ours{engine, program}, nil
}

func (o *ours) close(ctx context.Context) {
	o.program.Close()
	o.engine.Close(ctx)
}

// side calls a tool again and again, and compares what it returns.
func (o *ours) side(ctx context.Context, index int32, input, output string) measure.Side {
	tool := o.program.Tool("bench", index, limits.Limits{})
	arguments := []byte(input)
	return measure.Side{Name: "ours", Do: func() error {
		return same(output)(tool.Call(ctx, sandbox.CallSpec{Input: arguments}))
	}}
}

// same returns a check of a call's results. An empty want accepts any output.
func same(want string) func([]byte, error) error {
	return func(got []byte, err error) error {
		if err == nil && want != "" && string(got) != want {
			err = fmt.Errorf("got %q, want %q", got, want)
		}
		return err
	}
}

const (
	input  = guest.Input
	output = guest.Output
)
