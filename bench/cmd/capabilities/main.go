// Command capabilities measures what using a grant costs a tool, compared with a program that does the same without a sandbox, and prints one line
// "name value" for each figure and then one for each that falls short of its bar. Explanations go to stderr. It exits with 1 only where something
// could not be measured.
//
//	capabilities [-guests DIRECTORY] [-only NAME,...]
//
// `make bench-capabilities` builds what is needed.
package main

import (
	"context"
	"io"
	"os"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/guest"
	"github.com/toolsrv/toolsrv/bench/internal/measure"
)

func main() { os.Exit(measure.Main("capabilities", run, nil)) }

// A bench is one run.
type bench struct {
	measure.Plan
	guests guest.Shelf
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
	b := &bench{Plan: measure.Plan{Rounds: 15, Span: 200 * time.Millisecond}, report: &measure.Report{Out: out, Log: log, Bars: bars()}}
	flags := b.Flags("capabilities", log)
	flags.StringVar((*string)(&b.guests), "guests", "build/bench", "the directory of the guests")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	return b.report.Run(ctx, b.Plan, groups(b))
}
