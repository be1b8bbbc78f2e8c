package main

import (
	"context"
	"fmt"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/guest"
	"github.com/toolsrv/toolsrv/bench/internal/measure"
	"github.com/toolsrv/toolsrv/bench/internal/peer"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/runtime/limits"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// metering compares calls that compute. Our times are of whole calls. For the others only the call itself is timed, in an instance that is made,
// initialised and warmed before the clock starts: so all begin in the same state, and only the speed of code is compared, not that of making
// instances. The best of many turns counts, since by chance a plain instance may have to get memory for Go's heap from the system, which takes up to
// 30 ms.
func (b *bench) metering(ctx context.Context) error {
	ballast := make([]byte, 1<<30) // never used: it makes Go keep freed memory instead of returning it
	defer debug.FreeOSMemory()     // later measurements must not count this memory
	defer runtime.KeepAlive(ballast)
	overheads, stoppable, forSize := []float64{}, []float64{}, []float64{}
	for _, name := range []string{guest.RustCPU, guest.RustCPUSmall, guest.GoCPU} {
		module, err := b.guests.Read(name)
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
		closing, err := peer.NewWazero(ctx, module, true)
		if err != nil {
			return err
		}
		defer closing.Close(ctx)
		for i, work := range guest.CPU() {
			want, err := plain.CallFresh(ctx, int32(i), []byte("{}"))
			if err != nil {
				return fmt.Errorf("%s %s: %w", name, work, err)
			}
			ours := o.side(ctx, int32(i), "{}", string(want))
			var times [3][]float64
			for range 2*b.Rounds + 1 {
				runtime.GC()
				begin := time.Now()
				if err := ours.Do(); err != nil {
					return fmt.Errorf("%s %s: %w", name, work, err)
				}
				times[0] = append(times[0], float64(time.Since(begin)))
				for side, w := range []*peer.Wazero{plain, closing} {
					took, err := timed(ctx, w, int32(i), string(want))
					if err != nil {
						return fmt.Errorf("%s %s: %w", name, work, err)
					}
					times[side+1] = append(times[side+1], took)
				}
			}
			own, others, stopped := slices.Min(times[0]), slices.Min(times[1]), slices.Min(times[2])
			b.report.Explain("%s %s: plain wazero %.1f ms, ours %.1f ms, WithCloseOnContextDone %.1f ms", name, work, others/1e6, own/1e6, stopped/1e6)
			overhead, stops := own/others, stopped/own
			b.report.Figure("metering_overhead_"+name+"_"+work, overhead)
			if name == guest.RustCPUSmall { // this shows nothing about code that was compiled for speed, so it is a separate figure
				forSize = append(forSize, overhead)
				continue
			}
			overheads, stoppable = append(overheads, overhead), append(stoppable, stops)
		}
	}
	b.report.Explain("metering: geometric means over all of these guests; the worst overhead is %.3g, the least gain over WithCloseOnContextDone %.3g", slices.Max(overheads), slices.Min(stoppable))
	b.report.Figure("metering_overhead", measure.Mean(overheads))
	b.report.Figure("metering_vs_close_on_done", measure.Mean(stoppable))
	b.report.Figure("metering_overhead_for_size", measure.Mean(forSize))
	return nil
}

// timed returns the nanoseconds of one call in a new instance.
func timed(ctx context.Context, w *peer.Wazero, tool int32, want string) (float64, error) {
	instance, err := w.New(ctx)
	if err != nil {
		return 0, err
	}
	defer instance.Close(ctx)
	if err := instance.Warm(ctx); err != nil {
		return 0, err
	}
	runtime.GC()
	limited, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	begin := time.Now()
	output, err := instance.Call(limited, tool, []byte("{}"))
	took := time.Since(begin)
	return float64(took), same(want)(output, err)
}

// gcStall measures the host's garbage collector while guests compute.
func (b *bench) gcStall(ctx context.Context) error {
	module, err := b.guests.Read(guest.Odd)
	if err != nil {
		return err
	}
	o, err := newOurs(ctx, module)
	if err != nil {
		return err
	}
	defer o.close(ctx)
	longest := func(guests int) (time.Duration, int, error) {
		tool := o.program.Tool("spin", guest.Spin, limits.Limits{Timeout: time.Second})
		done := make(chan error, guests)
		for range guests {
			go func() { done <- spun(tool.Call(ctx, sandbox.CallSpec{Input: []byte("{}")})) }()
		}
		longest, n := time.Duration(0), 0
		for left := guests; left > 0; {
			begin := time.Now()
			runtime.GC()
			longest, n = max(longest, time.Since(begin)), n+1
			select {
			case err := <-done:
				if left--; err != nil {
					return 0, 0, err
				}
			default:
			}
		}
		return longest, n, nil
	}
	worst := time.Duration(0)
	for range 3 {
		stall, n, err := longest(1)
		if err != nil {
			return err
		}
		b.report.Explain("one guest computes for a second: the longest of %d collections took %v", n, stall)
		worst = max(worst, stall)
	}
	b.report.Figure("gc_stall_ms", millis(worst))
	stall, n, err := longest(runtime.GOMAXPROCS(0))
	if err != nil {
		return err
	}
	b.report.Explain("a guest on every core computes for a second: the longest of %d collections took %v", n, stall)
	b.report.Figure("gc_stall_every_core_ms", millis(stall))
	return nil
}

// neighbour measures calls of a small tool while another tool spins, in as many calls as may run at a time.
func (b *bench) neighbour(ctx context.Context) error {
	s, err := b.serve(ctx, func(directory string) error { return b.neighbours(directory) })
	if err != nil {
		return err
	}
	defer s.close(ctx)
	small, spin := s.caller("/bench/add"), s.caller("/bench/spin")
	if small == nil || spin == nil {
		return fmt.Errorf("the tools are not served: %v", s.refused())
	}
	if _, err := small.Call(ctx, &wasmtools.Call{Arguments: []byte(input)}); err != nil {
		return err
	}
	spinning, stop := context.WithCancel(ctx)
	var spinners sync.WaitGroup
	for range 4 * runtime.GOMAXPROCS(0) { // the default concurrency
		spinners.Go(func() {
			for spinning.Err() == nil {
				_, _ = spin.Call(spinning, &wasmtools.Call{Arguments: []byte("{}")}) // the call ends by its time limit or by stop
			}
		})
	}
	defer spinners.Wait()
	defer stop()
	var list []time.Duration
	for end := time.Now().Add(6 * time.Second); time.Now().Before(end); {
		// A call begins when its timer should fire, not when the host notices it: a server has to notice a request, too.
		begin := time.Now().Add(2 * time.Millisecond)
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(time.Until(begin)):
		}
		if err := same(output)(small.Call(ctx, &wasmtools.Call{Arguments: []byte(input)})); err != nil {
			return err
		}
		list = append(list, time.Since(begin))
	}
	n, half, p99 := len(list), measure.Percentile(list, 50), measure.Percentile(list, 99)
	b.report.Explain("%d calls of a small tool while %d calls of another spin: median %v, p99 %v, longest %v", n, 4*runtime.GOMAXPROCS(0), half, p99, list[n-1])
	b.report.Figure("neighbour_p99_ms", millis(p99))
	over, err := b.generate(ctx, s, 1, 6*time.Second)
	if err != nil {
		return err
	}
	b.report.Explain("%d requests over HTTP meanwhile, one after the other: median %.2f ms, p99 %.2f ms", over.Requests, over.P50*1e3, over.P99*1e3)
	b.report.Figure("neighbour_http_p99_ms", over.P99*1e3)
	return nil
}

// neighbours fills a directory with the tools bench/add and bench/spin.
func (b *bench) neighbours(directory string) error {
	small, err := b.guests.Read(guest.Small)
	if err != nil {
		return err
	}
	odd, err := b.guests.Read(guest.Odd)
	if err != nil {
		return err
	}
	if err := put(directory, small, guest.Parameters, "add"); err != nil {
		return err
	}
	return put(directory, odd, `{"type":"object"}`, "grow", "trap", "spin", "grow_mega")
}

// spun checks that a call ended by its time limit.
func spun(_ []byte, err error) error {
	if e, ok := err.(*sandbox.Error); ok && e.Outcome == sandbox.ToolTimeout {
		return nil
	}
	return fmt.Errorf("a guest that never returns ended with %v, not by its time limit", err)
}

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }
