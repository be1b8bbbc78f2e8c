// Command capabilities measures what a tool pays to use what it was granted, beside a program that does the same without a
// sandbox, and prints one line "name value" for each figure and then one for each that falls short of its bar. Explanations go to
// stderr. It exits with 1 only where something could not be measured.
//
//	capabilities [-guests DIRECTORY] [-only NAME,...]
//
// `make bench-capabilities` builds what is needed.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/guest"
	"github.com/toolsrv/toolsrv/bench/internal/measure"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "capabilities:", err)
		os.Exit(1)
	}
}

// A bench is one run.
type bench struct {
	guests guest.Shelf
	rounds int
	span   time.Duration // of one side in one round
	report *measure.Report
}

// groups are the figures that are measured together.
func groups(b *bench) []measure.Group {
	return []measure.Group{
		{Names: []string{"http_vs_nethttp", "http_vs_nethttp_alone"}, Measure: b.http},
		{Names: []string{"kv_get_us"}, Measure: b.get},
		{Names: []string{"kv_set_per_s", "kv_set_vs_bbolt"}, Measure: b.set},
		{Names: []string{"compose_us"}, Measure: b.compose},
		{Names: []string{"waiting_kib", "waiting_neighbour_p99_ms"}, Measure: b.waiting},
	}
}

// bars are what the figures must reach.
func bars() map[string]measure.Bar {
	return map[string]measure.Bar{
		"http_vs_nethttp": {Limit: 1.3},
		"kv_get_us":       {Limit: 10},
		"kv_set_vs_bbolt": {Limit: 0.7, Least: true},
		"compose_us":      {Limit: 8},

		"waiting_kib":              {Limit: 200},
		"waiting_neighbour_p99_ms": {Limit: 20},
	}
}

func run(ctx context.Context, arguments []string, out, log io.Writer) error {
	b := &bench{report: &measure.Report{Out: out, Log: log, Bars: bars()}}
	flags := flag.NewFlagSet("capabilities", flag.ContinueOnError)
	flags.SetOutput(log)
	flags.StringVar((*string)(&b.guests), "guests", "build/bench", "the directory of the guests")
	flags.IntVar(&b.rounds, "rounds", 15, "how often each side has its turn; medians count")
	flags.DurationVar(&b.span, "span", 200*time.Millisecond, "how long a turn takes")
	only := flags.String("only", "", "measure only the groups of these figures, separated by commas")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	return b.report.Run(ctx, measure.Plan{Rounds: b.rounds, Span: b.span, Only: *only}, groups(b))
}
