// Command sandbox measures what the sandbox promises, each promise beside the other ways to do the same, and prints one
// line "name value" for each figure and then one for each that falls short of its bar. Explanations go to stderr. It
// exits with 1 only where something could not be measured.
//
//	sandbox -guests DIRECTORY [-server BINARY] [-only NAME,...]
//	sandbox -guests DIRECTORY -wasmtime BINARY
//
// The second form measures against wasmtime alone. `make bench-sandbox` and `make bench-wasmtime` build what is needed.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/guest"
	"github.com/toolsrv/toolsrv/bench/internal/load"
	"github.com/toolsrv/toolsrv/bench/internal/measure"
)

func main() {
	if len(os.Args) > 1 && os.Args[1] == load.Command {
		exit(load.Child(os.Stdin, os.Stdout))
	}
	if len(os.Args) > 1 && os.Args[1] == idleCommand {
		exit(idleChild(os.Args[2:], os.Stdout))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "sandbox:", err)
		os.Exit(1)
	}
	os.Exit(0)
}

// A bench is one run.
type bench struct {
	guests   guest.Shelf
	server   string // the real binary
	wasmtime string
	rounds   int
	span     time.Duration // of one side in one round
	report   *measure.Report
}

// A group of figures is measured together.
type group struct {
	names   []string // of the figures with a bar
	measure func(*bench, context.Context) error
}

func groups() []group {
	return []group{
		{[]string{"pristine_vs_fresh_rust", "pristine_vs_reused_rust"}, (*bench).pristineRust},
		{[]string{"pristine_vs_fresh_go", "pristine_vs_extism_go"}, (*bench).pristineGo},
		{[]string{"grown_vs_fresh_rust"}, (*bench).grown},
		{[]string{"metering_overhead", "metering_vs_close_on_done"}, (*bench).metering},
		{[]string{"gc_stall_ms"}, (*bench).gcStall},
		{[]string{"neighbour_p99_ms"}, (*bench).neighbour},
		{[]string{"http_vs_native"}, (*bench).http},
		{[]string{"idle_kib_per_tool"}, (*bench).idle},
		{[]string{"start_1000_ms"}, (*bench).start},
	}
}

// bars are what the figures must reach.
func bars() map[string]measure.Bar {
	return map[string]measure.Bar{
		"pristine_vs_fresh_rust":    {Limit: 150, Least: true},
		"pristine_vs_fresh_go":      {Limit: 80, Least: true},
		"pristine_vs_reused_rust":   {Limit: 3},
		"pristine_vs_extism_go":     {Limit: 3, Least: true},
		"pristine_vs_wasmtime_rust": {Limit: 4, Least: true},
		"metering_overhead":         {Limit: 1.10},
		"metering_vs_close_on_done": {Limit: 3, Least: true},
		"gc_stall_ms":               {Limit: 30},
		"neighbour_p99_ms":          {Limit: 50},
		"grown_vs_fresh_rust":       {Limit: 8, Least: true},
		"http_vs_native":            {Limit: 0.85, Least: true},
		"idle_kib_per_tool":         {Limit: 60},
		"start_1000_ms":             {Limit: 1000},
	}
}

func run(ctx context.Context, arguments []string, out, log io.Writer) error {
	b := &bench{report: &measure.Report{Out: out, Log: log, Bars: bars()}}
	flags := flag.NewFlagSet("sandbox", flag.ContinueOnError)
	flags.SetOutput(log)
	flags.StringVar((*string)(&b.guests), "guests", "build/bench", "the directory of the built guests")
	flags.StringVar(&b.server, "server", "bin/toolsrv", "the server's binary, for start_1000_ms")
	flags.StringVar(&b.wasmtime, "wasmtime", "", "the binary of bench/wasmtime: measure against it, and nothing else")
	flags.IntVar(&b.rounds, "rounds", 7, "how often each side has its turn; medians count")
	flags.DurationVar(&b.span, "span", 300*time.Millisecond, "how long a turn takes")
	only := flags.String("only", "", "measure only the groups of these figures, separated by commas")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	begin := time.Now()
	b.report.Explain("%s, %s/%s, GOMAXPROCS %d, %d rounds of %v a side", runtime.Version(), runtime.GOOS, runtime.GOARCH,
		runtime.GOMAXPROCS(0), b.rounds, b.span)
	list := groups()
	if b.wasmtime != "" {
		list = []group{{[]string{"pristine_vs_wasmtime_rust"}, (*bench).pristineWasmtime}}
	}
	var errs []error
	for _, g := range list {
		wanted := func(name string) bool { return *only == "" || slices.Contains(strings.Split(*only, ","), name) }
		if !slices.ContainsFunc(g.names, wanted) {
			continue
		}
		if err := g.measure(b, ctx); err != nil {
			errs = append(errs, fmt.Errorf("could not measure %s: %w", strings.Join(g.names, ", "), err))
		}
	}
	b.report.End()
	b.report.Explain("took %v", time.Since(begin).Round(time.Second))
	return errors.Join(errs...)
}
