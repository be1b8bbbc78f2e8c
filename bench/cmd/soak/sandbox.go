package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/guest"
	"github.com/toolsrv/toolsrv/internal/runtime/abi1"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

// A kind is a kind of call.
type kind struct {
	share   int // the number of calls of this kind in a hundred
	tool    *sandbox.Tool
	input   []byte
	cancel  time.Duration   // 0 means that the caller waits
	outcome sandbox.Outcome // "" for a success, with output
	output  string
	timed   bool // its time is part of the window's times
}

// soakSandbox makes calls of all kinds.
func soakSandbox(ctx context.Context, shelf guest.Shelf, w *watch) error {
	engine, err := sandbox.New(ctx, sandbox.Config{Imports: abi1.Sets()})
	if err != nil {
		return err
	}
	defer engine.Close(context.WithoutCancel(ctx))
	kinds, release, err := kindsOf(ctx, engine, shelf)
	defer release()
	if err != nil {
		return err
	}
	return w.drive(ctx, func(ctx context.Context, random *rand.Rand) (time.Duration, error) {
		at := random.IntN(100)
		for _, k := range kinds {
			if at -= k.share; at < 0 {
				return k.call(ctx)
			}
		}
		panic("the shares do not add up to a hundred")
	})
}

// kindsOf loads the programs; release closes them.
func kindsOf(ctx context.Context, engine *sandbox.Engine, shelf guest.Shelf) (kinds []kind, release func(), err error) {
	var programs []*sandbox.Program
	release = func() {
		for _, p := range programs {
			p.Close()
		}
	}
	load := func(name string) *sandbox.Program {
		if err != nil {
			return nil
		}
		var module []byte
		if module, err = shelf.Read(name); err != nil {
			return nil
		}
		var p *sandbox.Program
		if p, err = engine.Load(module, abi1.Modules()...); err == nil {
			programs = append(programs, p)
			err = p.Compile(ctx) // a call of five milliseconds has no time to compile
		}
		return p
	}
	small, golang, odd := load(guest.Small), load(guest.Go), load(guest.Odd)
	if err != nil {
		return nil, release, err
	}
	terms, none := []byte(guest.Input), []byte("{}")
	ample := limits.Limits{}
	short := limits.Limits{Timeout: 5 * time.Millisecond, Concurrency: workers}
	return []kind{
		{share: 88, tool: small.Tool("small", 0, ample), input: terms, output: guest.Output, timed: true},
		{share: 6, tool: golang.Tool("go", 0, ample), input: terms, output: guest.Output},
		{share: 2, tool: odd.Tool("grow", guest.Grow, ample), input: none, output: "true"},
		{share: 2, tool: odd.Tool("trap", guest.Trap, ample), input: none, outcome: sandbox.ToolTrapped},
		{share: 1, tool: odd.Tool("spin", guest.Spin, short), input: none, outcome: sandbox.ToolTimeout},
		{share: 1, tool: odd.Tool("left", guest.Spin, ample), input: none, cancel: 2 * time.Millisecond, outcome: sandbox.Cancelled},
	}, release, nil
}

// call makes one call and checks how it ended.
func (k *kind) call(ctx context.Context) (time.Duration, error) {
	if k.cancel > 0 {
		leaving, leave := context.WithCancel(ctx)
		defer leave()
		defer time.AfterFunc(k.cancel, leave).Stop()
		ctx = leaving
	}
	begin := time.Now()
	output, err := k.tool.Call(ctx, sandbox.CallSpec{Input: k.input})
	took := time.Since(begin)
	var failed *sandbox.Error
	switch {
	case k.outcome == "" && err != nil:
		return 0, err
	case k.outcome == "" && string(output) != k.output:
		return 0, fmt.Errorf("a call returned %q, want %q", output, k.output)
	case k.outcome != "" && (!errors.As(err, &failed) || failed.Outcome != k.outcome):
		return 0, fmt.Errorf("a call ended with %v, want %v", err, k.outcome)
	}
	if !k.timed {
		took = 0
	}
	return took, nil
}
