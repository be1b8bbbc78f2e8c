package main

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/guest"
	"github.com/toolsrv/toolsrv/bench/internal/measure"
	"github.com/toolsrv/toolsrv/bench/internal/peer"
)

// pristineRust compares the cost of a call that begins in a new sandbox, for a small guest.
func (b *bench) pristineRust(ctx context.Context) error {
	module, err := b.guests.Read(guest.Small)
	if err != nil {
		return err
	}
	o, err := newOurs(ctx, module)
	if err != nil {
		return err
	}
	defer o.close(ctx)
	plain, err := peer.NewWazero(ctx, module, false)
	if err != nil {
		return err
	}
	defer plain.Close(ctx)
	reused, err := plain.New(ctx)
	if err != nil {
		return err
	}
	times, err := measure.Compare(b.Rounds, b.Span, o.side(ctx, 0, input, output), fresh(ctx, plain, 0, input, output), reusedSide(ctx, reused))
	if err != nil {
		return err
	}
	b.report.Explain("small Rust guest, %d bytes: ours %.2f µs, new wazero instance %.1f µs, one reused wazero instance %.2f µs",
		len(module), times.Of(0)/1e3, times.Of(1)/1e3, times.Of(2)/1e3)
	b.report.Figure("pristine_vs_fresh_rust", times.Ratio(1, 0))
	b.report.Figure("pristine_vs_reused_rust", times.Difference(0, 2)/1e3)
	b.report.Figure("ours_rust_us", times.Of(0)/1e3)
	return nil
}

// pristineGo does the same for a Go guest with encoding/json, and also compares Extism.
func (b *bench) pristineGo(ctx context.Context) error {
	module, err := b.guests.Read(guest.Go)
	if err != nil {
		return err
	}
	o, err := newOurs(ctx, module)
	if err != nil {
		return err
	}
	defer o.close(ctx)
	plain, err := peer.NewWazero(ctx, module, false)
	if err != nil {
		return err
	}
	defer plain.Close(ctx)
	reused, err := plain.New(ctx)
	if err != nil {
		return err
	}
	plugin, err := peer.NewExtism(ctx, b.guests.Path(guest.Extism), 5*time.Second)
	if err != nil {
		return err
	}
	defer plugin.Close(ctx)
	arguments := []byte(input)
	times, err := measure.Compare(b.Rounds, b.Span, o.side(ctx, 0, input, output), fresh(ctx, plain, 0, input, output), reusedSide(ctx, reused),
		measure.Side{Name: "Extism", Do: func() error { return same(output)(plugin.Call(ctx, "add", arguments)) }})
	if err != nil {
		return err
	}
	b.report.Explain("Go guest with encoding/json: ours %.1f µs, new wazero instance %.0f µs, one reused wazero instance %.1f µs, one reused Extism plugin with a time limit %.1f µs",
		times.Of(0)/1e3, times.Of(1)/1e3, times.Of(2)/1e3, times.Of(3)/1e3)
	b.report.Figure("pristine_vs_fresh_go", times.Ratio(1, 0))
	b.report.Figure("pristine_vs_extism_go", times.Ratio(3, 0))
	b.report.Figure("ours_go_us", times.Of(0)/1e3)
	return nil
}

// grown compares calls that let the memory grow.
func (b *bench) grown(ctx context.Context) error {
	module, err := b.guests.Read(guest.Odd)
	if err != nil {
		return err
	}
	o, err := newOurs(ctx, module)
	if err != nil {
		return err
	}
	defer o.close(ctx)
	plain, err := peer.NewWazero(ctx, module, false)
	if err != nil {
		return err
	}
	defer plain.Close(ctx)
	for _, size := range []struct {
		name, by string
		tool     int32
	}{{"grown_vs_fresh_rust", "64 KiB", guest.Grow}, {"grown_mega_vs_fresh_rust", "1 MiB", guest.GrowMega}} {
		times, err := measure.Compare(b.Rounds, b.Span, o.side(ctx, size.tool, "{}", "true"), fresh(ctx, plain, size.tool, "{}", "true"))
		if err != nil {
			return err
		}
		b.report.Explain("Rust guest that grows its memory by %s in every call and writes to it: ours %.1f µs, new wazero instance %.1f µs",
			size.by, times.Of(0)/1e3, times.Of(1)/1e3)
		b.report.Figure(size.name, times.Ratio(1, 0))
	}
	return nil
}

// pristineWasmtime runs bench/wasmtime and ours in turn.
func (b *bench) pristineWasmtime(ctx context.Context) error {
	module, err := b.guests.Read(guest.Small)
	if err != nil {
		return err
	}
	o, err := newOurs(ctx, module)
	if err != nil {
		return err
	}
	defer o.close(ctx)
	ratios, peers := make([]float64, b.Rounds), make([]float64, b.Rounds)
	for i := range ratios {
		times, err := measure.Compare(1, b.Span, o.side(ctx, 0, input, output))
		if err != nil {
			return err
		}
		text, err := exec.CommandContext(ctx, b.wasmtime, b.guests.Path(guest.Small), fmt.Sprint(b.Span.Milliseconds())).Output()
		if err != nil {
			return fmt.Errorf("run %s: %w", b.wasmtime, err)
		}
		if peers[i], err = strconv.ParseFloat(strings.TrimSpace(string(text)), 64); err != nil {
			return fmt.Errorf("read what %s printed: %w", b.wasmtime, err)
		}
		ratios[i] = peers[i] / times.Of(0)
	}
	b.report.Explain("small Rust guest, a new instance for each call in wasmtime at its best: %.2f µs", measure.Median(peers)/1e3)
	b.report.Figure("pristine_vs_wasmtime_rust", measure.Median(ratios))
	b.report.Figure("wasmtime_rust_us", measure.Median(peers)/1e3)
	return nil
}

func fresh(ctx context.Context, plain *peer.Wazero, tool int32, input, output string) measure.Side {
	arguments := []byte(input)
	return measure.Side{Name: "a new wazero instance", Do: func() error {
		return same(output)(plain.CallFresh(ctx, tool, arguments))
	}}
}

func reusedSide(ctx context.Context, instance *peer.Instance) measure.Side {
	arguments := []byte(input)
	return measure.Side{Name: "a reused wazero instance", Do: func() error {
		return same(output)(instance.Call(ctx, 0, arguments))
	}}
}
