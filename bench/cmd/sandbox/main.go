// Command sandbox measures what the sandbox promises, each figure compared with other ways to do the same, and prints one
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
	"io"
	"os"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/guest"
	"github.com/toolsrv/toolsrv/bench/internal/load"
	"github.com/toolsrv/toolsrv/bench/internal/measure"
)

func main() {
	os.Exit(measure.Main("sandbox", run, map[string]measure.Child{load.Command: load.Child, idleCommand: idleChild}))
}

// A bench is one run.
type bench struct {
	measure.Plan
	guests   guest.Shelf
	server   string // the real binary
	wasmtime string
	report   *measure.Report
}

// groups are the figures that are measured together.
func groups(b *bench) []measure.Group {
	return []measure.Group{
		{Names: []string{"pristine_vs_fresh_rust", "pristine_vs_reused_rust"}, Measure: b.pristineRust},
		{Names: []string{"pristine_vs_fresh_go", "pristine_vs_extism_go"}, Measure: b.pristineGo},
		{Names: []string{"grown_vs_fresh_rust"}, Measure: b.grown},
		{Names: []string{"metering_overhead", "metering_vs_close_on_done"}, Measure: b.metering},
		{Names: []string{"gc_stall_ms"}, Measure: b.gcStall},
		{Names: []string{"neighbour_p99_ms"}, Measure: b.neighbour},
		{Names: []string{"http_vs_native"}, Measure: b.http},
		{Names: []string{"idle_kib_per_tool"}, Measure: b.idle},
		{Names: []string{"start_1000_ms"}, Measure: b.start},
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
	b := &bench{Plan: measure.Plan{Rounds: 7, Span: 300 * time.Millisecond}, report: &measure.Report{Out: out, Log: log, Bars: bars()}}
	flags := b.Flags("sandbox", log)
	flags.StringVar((*string)(&b.guests), "guests", "build/bench", "the directory of the built guests")
	flags.StringVar(&b.server, "server", "bin/toolsrv", "the server's binary, for start_1000_ms")
	flags.StringVar(&b.wasmtime, "wasmtime", "", "the binary of bench/wasmtime: measure against it, and nothing else")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	list := groups(b)
	if b.wasmtime != "" {
		list = []measure.Group{{Names: []string{"pristine_vs_wasmtime_rust"}, Measure: b.pristineWasmtime}}
	}
	return b.report.Run(ctx, b.Plan, list)
}
