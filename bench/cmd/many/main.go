// Command many measures what it costs to run several servers with one state, and how soon they agree. It runs three servers and three NATS nodes,
// each in a separate process. It prints one line "name value" for each figure and then one for each that falls short of its bar. Explanations go to
// stderr. It exits with 1 only where something could not be measured.
//
//	many [-guests DIRECTORY] [-server BINARY] [-cut TIME] [-only NAME,...]
//
// `make bench-many` builds what is needed.
package main

import (
	"context"
	"io"
	"os"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/cluster"
	"github.com/toolsrv/toolsrv/bench/internal/guest"
	"github.com/toolsrv/toolsrv/bench/internal/load"
	"github.com/toolsrv/toolsrv/bench/internal/measure"
)

func main() {
	os.Exit(measure.Main("many", run, map[string]measure.Child{load.Command: load.Child, cluster.Command: cluster.Child}))
}

// A bench is one run.
type bench struct {
	measure.Plan
	guests guest.Shelf
	server string // the binary
	cut    time.Duration
	report *measure.Report
}

// groups are the figures that are measured together.
func groups(b *bench) []measure.Group {
	return []measure.Group{
		{Names: []string{"change_ms"}, Measure: b.changing},
		{Names: []string{"upload_ms"}, Measure: func(ctx context.Context) error { return uploading(ctx, b) }},
		{Names: []string{"three_vs_one"}, Measure: b.three},
		{Names: []string{"call_cost"}, Measure: b.cost},
		{Names: []string{"kv_get_us", "kv_set_ms"}, Measure: b.keys},
		{Names: []string{"pull_mib_s"}, Measure: func(ctx context.Context) error { return pulling(ctx, b) }},
		{Names: []string{"catch_up_s"}, Measure: b.catching},
	}
}

// bars are what the figures must reach.
func bars() map[string]measure.Bar {
	return map[string]measure.Bar{
		"change_ms":    {Limit: 100},
		"upload_ms":    {Limit: 1000},
		"three_vs_one": {Limit: 0.9, Least: true},
		"call_cost":    {Limit: 0.98, Least: true},
		"kv_get_us":    {Limit: 10},
		"kv_set_ms":    {Limit: 3},
		"pull_mib_s":   {Limit: 0.7, Least: true},
		"catch_up_s":   {Limit: 2},
	}
}

func run(ctx context.Context, arguments []string, out, log io.Writer) error {
	b := &bench{Plan: measure.Plan{Rounds: 15, Span: time.Second}, report: &measure.Report{Out: out, Log: log, Bars: bars()}}
	flags := b.Flags("many", log)
	flags.StringVar((*string)(&b.guests), "guests", "build/bench", "the directory of the guests")
	flags.StringVar(&b.server, "server", "bin/toolsrv", "the server's binary")
	flags.DurationVar(&b.cut, "cut", 10*time.Minute, "how long a server is cut off before it catches up")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	return b.report.Run(ctx, b.Plan, groups(b))
}
