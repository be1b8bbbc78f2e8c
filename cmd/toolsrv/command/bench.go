package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolsrv/toolsrv/internal/author/workbench"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// bench holds the flags of `toolsrv bench`.
type bench struct {
	fileFlags
	asJSON      bool
	calls       int64
	duration    time.Duration
	warmup      time.Duration
	concurrency int
}

// maxConcurrency bounds --concurrency: each call takes a goroutine, and an instance with its memory.
const maxConcurrency = 1000

func newBench() *cobra.Command {
	b := bench{fileFlags: fileFlags{logLevel: slog.LevelError}}
	cmd := &cobra.Command{
		Use:   "bench FILE [TOOL] [JSON|-]",
		Short: "Measure how long calls of a tool take",
		Long: `Call a tool of FILE again and again, in the sandbox, and show how long a call takes and how many
complete per second. A call does what it does in a server, except for HTTP: validation, defaults,
the tool in a clean sandbox, the reset.

TOOL may be left out if the file has one tool. JSON is the arguments; without it, those of the
tool's first example are used.

Exit codes: 0 done, 1 if a call failed or the file could not be loaded, 2 wrong usage, and the
codes of 'toolsrv call' if the very first call fails.`,
		Example: `  toolsrv bench math.wasm add '{"a": 2, "b": 3}'
  toolsrv bench math.wasm add --concurrency 4 --duration 10s --json`,
		Args:              fileAnd(2, "a tool and its arguments"),
		RunE:              b.run,
		ValidArgsFunction: completeTool,
	}
	b.add(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&b.asJSON, "json", false, "print a JSON object, with times in microseconds")
	flags.DurationVarP(&b.duration, "duration", "d", 3*time.Second, "how long to measure, a `time`")
	flags.Int64VarP(&b.calls, "calls", "n", 0, "measure this `number` of calls, however long they take")
	flags.DurationVar(&b.warmup, "warm-up", 500*time.Millisecond, "how long to call before measuring, a `time`")
	flags.IntVarP(&b.concurrency, "concurrency", "c", 1, "the `number` of calls at a time")
	return cmd
}

// check refuses flags that make no sense.
func (b *bench) check(cmd *cobra.Command) error {
	flags := cmd.Flags()
	switch {
	case b.concurrency < 1 || b.concurrency > maxConcurrency:
		return fmt.Errorf("--concurrency is %d: give a number from 1 to %d", b.concurrency, maxConcurrency)
	case flags.Changed("calls") && b.calls < 1:
		return fmt.Errorf("--calls is %d: give a number from 1, or leave it out", b.calls)
	case flags.Changed("calls") && flags.Changed("duration"):
		return errors.New("--calls and --duration each say when to stop: give one of them")
	case b.duration <= 0:
		return fmt.Errorf("--duration is %s: give a time such as 10s", b.duration)
	case b.warmup < 0:
		return fmt.Errorf("--warm-up is %s: give a time such as 1s, or 0 for none", b.warmup)
	}
	return nil
}

func (b *bench) run(cmd *cobra.Command, args []string) error {
	name, body, err := toolAndBody(args[1:])
	if err == nil {
		if err = b.check(cmd); err != nil {
			err = &usageError{err}
		}
	}
	if err != nil {
		return err
	}
	ctx, stop := untilInterrupted(cmd.Context())
	defer stop()
	stderr := cmd.ErrOrStderr()
	b.limits.Concurrency = b.concurrency // otherwise calls would wait for a turn, and the wait would be measured
	file, err := b.open(ctx, args[0], stderr)
	if err != nil {
		return err
	}
	defer file.Close()
	tool, err := file.Pick(name)
	if err != nil {
		return &usageError{err}
	}
	var arguments []byte
	switch {
	case body != nil:
		if arguments, err = readArguments(*body, cmd.InOrStdin(), stderr, tool.MaxInput); err != nil {
			return err
		}
	case len(tool.Examples) > 0:
		arguments = tool.Examples[0].Arguments
	default:
		return &usageError{fmt.Errorf("%s has no example to take arguments from: give them as JSON", tool.Path())}
	}
	// If a call fails, the arguments are probably wrong, and there is no point in measuring.
	if _, err := file.Call(ctx, tool, &wasmtools.Call{Arguments: arguments}); err != nil {
		err = tellFailure(stderr, err, false)
		tellMissing(stderr, tool)
		return err
	}
	done := showWaiting(stderr, "measuring "+tool.Path())
	b.measure(ctx, file, tool, arguments, b.warmup, 0)
	m := b.measure(ctx, file, tool, arguments, b.duration, b.calls)
	done()
	if m.calls == 0 {
		return errors.New("interrupted before anything was measured")
	}
	report := m.report(args[0], tool.Path(), b.concurrency)
	if b.asJSON {
		err = printJSON(cmd.OutOrStdout(), report)
	} else {
		err = report.print(cmd.OutOrStdout())
	}
	if err == nil && m.failed > 0 {
		err = fmt.Errorf("%d of %d calls failed, the first with: %w", m.failed, m.calls, m.err)
	}
	return err
}

// A measurement is the outcome of many calls.
type measurement struct {
	times  histogram
	calls  int64
	failed int64
	err    error // the error of the first call that failed
	took   time.Duration
}

// measure calls the tool for the time d, or calls times if that is not 0. It stops early when ctx ends.
func (b *bench) measure(ctx context.Context, file *workbench.File, tool *wasmtools.Tool, arguments []byte, d time.Duration, calls int64) *measurement {
	begun := time.Now()
	end := begun.Add(d)
	var started atomic.Int64
	parts := make([]measurement, b.concurrency)
	var workers sync.WaitGroup
	for i := range parts {
		workers.Go(func() {
			m := &parts[i]
			for last := time.Now(); ctx.Err() == nil; {
				if calls > 0 && started.Add(1) > calls || calls == 0 && !last.Before(end) {
					return
				}
				_, err := file.Call(ctx, tool, &wasmtools.Call{Arguments: arguments})
				if ctx.Err() != nil {
					return // the call may have been cut off
				}
				now := time.Now()
				m.times.add(now.Sub(last))
				m.calls++
				if err != nil {
					if m.failed++; m.err == nil {
						m.err = err
					}
				}
				last = now
			}
		})
	}
	workers.Wait()
	whole := &measurement{took: time.Since(begun)}
	for i := range parts {
		whole.times.merge(&parts[i].times)
		whole.calls += parts[i].calls
		whole.failed += parts[i].failed
		if whole.err == nil {
			whole.err = parts[i].err
		}
	}
	return whole
}

// benched is what `toolsrv bench --json` prints. Its members are stable.
type benched struct {
	File           string    `json:"file"`
	Path           string    `json:"path"`
	Concurrency    int       `json:"concurrency"`
	Seconds        float64   `json:"seconds"`
	Calls          int64     `json:"calls"`
	Failed         int64     `json:"failed"`
	CallsPerSecond float64   `json:"calls_per_second"`
	Microseconds   latencies `json:"microseconds"`
}

// latencies are times of calls in microseconds: the shortest, the longest, and percentiles.
type latencies struct {
	Min  float64 `json:"min"`
	P50  float64 `json:"p50"`
	P90  float64 `json:"p90"`
	P99  float64 `json:"p99"`
	P999 float64 `json:"p99_9"`
	Max  float64 `json:"max"`
}

func (m *measurement) report(file, path string, concurrency int) benched {
	micros := func(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1e3 }
	h := &m.times
	return benched{
		File: file, Path: path, Concurrency: concurrency,
		Seconds: m.took.Seconds(), Calls: m.calls, Failed: m.failed, CallsPerSecond: float64(m.calls) / m.took.Seconds(),
		Microseconds: latencies{micros(h.min), micros(h.quantile(0.5)), micros(h.quantile(0.9)), micros(h.quantile(0.99)),
			micros(h.quantile(0.999)), micros(h.max)},
	}
}

func (b benched) print(w io.Writer) error {
	failed := "none failed"
	if b.Failed > 0 {
		failed = fmt.Sprintf("%d failed", b.Failed)
	}
	fmt.Fprintf(w, "%s: %d calls in %.1f s, %d at a time, %s\n", b.Path, b.Calls, b.Seconds, b.Concurrency, failed)
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintf(table, "calls/s\t%.0f\t\n", b.CallsPerSecond)
	l := b.Microseconds
	for _, row := range []struct {
		name   string
		micros float64
	}{{"min", l.Min}, {"p50", l.P50}, {"p90", l.P90}, {"p99", l.P99}, {"p99.9", l.P999}, {"max", l.Max}} {
		fmt.Fprintf(table, "%s\t%s\t\n", row.name, timeText(time.Duration(row.micros*1e3)))
	}
	return table.Flush()
}
