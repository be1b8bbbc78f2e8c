package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"runtime"
	"sync"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/measure"
)

const (
	windows = 12 // of a leg
	settled = 3  // how many windows it takes until pools, caches and the heap have grown to their size
	workers = 8
)

// A watch divides one leg of the soak test into windows of time, and measures the process after each window, when no call runs.
type watch struct {
	name    string
	span    time.Duration // of a window
	out     io.Writer
	calls   int
	samples []sample
}

// A sample has the measurements of the process after a window, and the times of the window's calls.
type sample struct {
	resident          float64 // bytes
	files, maps       float64
	goroutines        float64
	half, p99, number float64 // median and p99 in seconds, and the number of calls
}

// drive makes calls in workers until all windows are over. call makes one call and returns how long it took, or 0 if its time must not count.
func (w *watch) drive(ctx context.Context, call func(ctx context.Context, random *rand.Rand) (time.Duration, error)) error {
	for n := range windows {
		end := time.Now().Add(w.span)
		lists, errs, counts := make([][]time.Duration, workers), make([]error, workers), make([]int, workers)
		var all sync.WaitGroup
		for i := range workers {
			all.Go(func() {
				random := rand.New(rand.NewPCG(uint64(n), uint64(i)))
				for time.Now().Before(end) && errs[i] == nil && ctx.Err() == nil {
					took, err := call(ctx, random)
					if took > 0 {
						lists[i] = append(lists[i], took)
					}
					errs[i] = err
					counts[i]++
				}
			})
		}
		all.Wait()
		if err := errors.Join(append(errs, ctx.Err())...); err != nil {
			return err
		}
		var list []time.Duration
		for i, l := range lists {
			list = append(list, l...)
			w.calls += counts[i]
		}
		if err := w.look(list); err != nil {
			return err
		}
	}
	return nil
}

// look takes a sample.
func (w *watch) look(list []time.Duration) error {
	s := sample{number: float64(len(list))}
	if len(list) > 0 {
		s.half, s.p99 = measure.Percentile(list, 50).Seconds(), measure.Percentile(list, 99).Seconds()
	}
	resident, err := measure.Resident()
	if err != nil {
		return err
	}
	files, err := measure.Files()
	if err != nil {
		return err
	}
	maps, err := measure.Maps()
	if err != nil {
		return err
	}
	s.resident, s.files, s.maps, s.goroutines = float64(resident), float64(files), float64(maps), float64(runtime.NumGoroutine())
	w.samples = append(w.samples, s)
	fmt.Fprintf(w.out, "%s window %2d: %8d calls so far, %6.1f MiB, %3.0f files, %4.0f maps, %3.0f goroutines, median %7.1f µs, p99 %8.1f µs\n",
		w.name, len(w.samples), w.calls, s.resident/(1<<20), s.files, s.maps, s.goroutines, s.half*1e6, s.p99*1e6)
	return nil
}

// judge compares the last windows with the first settled ones. They may differ by as much as other work on the machine explains. Leaks show
// nevertheless, because half of all calls lie between the compared windows. With a million calls, losing a page in every hundredth call would show
// as 20 MiB, and losing a file or a goroutine in every ten-thousandth call would show as 50 of them.
func (w *watch) judge() error {
	first, last := w.samples[settled:settled+settled], w.samples[len(w.samples)-settled:]
	var errs []error
	for _, c := range []struct {
		what          string
		of            func(sample) float64
		factor, extra float64
	}{
		{"resident bytes", func(s sample) float64 { return s.resident }, 1.05, 8 << 20},
		{"open files", func(s sample) float64 { return s.files }, 1, 4},
		{"memory mappings", func(s sample) float64 { return s.maps }, 1.05, 32},
		{"goroutines", func(s sample) float64 { return s.goroutines }, 1, 8},
		{"seconds of a median call", func(s sample) float64 { return s.half }, 1.5, 20e-6},
		{"seconds at p99", func(s sample) float64 { return s.p99 }, 2, 5e-3},
	} {
		before, after := middle(first, c.of), middle(last, c.of)
		if limit := before*c.factor + c.extra; after > limit {
			errs = append(errs, fmt.Errorf("%s grew from %g to %g; up to %g counts as flat", c.what, before, after, limit))
		}
	}
	return errors.Join(errs...)
}

func middle(samples []sample, of func(sample) float64) float64 {
	list := make([]float64, len(samples))
	for i, s := range samples {
		list[i] = of(s)
	}
	return measure.Median(list)
}
