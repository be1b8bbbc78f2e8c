// Command see measures what observing a server costs: metrics, traces and the like. It prints one line "name value" for each figure and then one for
// each that falls short of its bar. Explanations go to stderr. It exits with 1 only where something could not be measured.
//
//	see [-guests DIRECTORY] [-server BINARY] [-browser MODULE] [-only NAME,...]
//
// `make bench-see` builds what is needed; `make setup-browser` installs the browser.
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
	os.Exit(measure.Main("see", run, map[string]measure.Child{load.Command: load.Child}))
}

// A bench is one run.
type bench struct {
	measure.Plan
	guests guest.Shelf
	server string // the binary
	pages  string // the module whose tests use the pages in a browser
	report *measure.Report
}

// groups are the figures that are measured together.
func groups(b *bench) []measure.Group {
	return []measure.Group{
		{Names: []string{"metrics_cost"}, Measure: b.metricsCost},
		{Names: []string{"trace_cost"}, Measure: b.traceCost},
		{Names: []string{"follower_cost", "followers_cost"}, Measure: func(ctx context.Context) error { return followersCost(ctx, b) }},
		{Names: []string{"scrape_10k_ms"}, Measure: b.scrape},
		{Names: []string{"page_kib"}, Measure: b.page},
		{Names: []string{"page_ready_ms", "page_key_ms"}, Measure: b.browse},
		{Names: []string{"events_fanout_ms"}, Measure: func(ctx context.Context) error { return fanout(ctx, b) }},
	}
}

// bars are what the figures must reach.
func bars() map[string]measure.Bar {
	return map[string]measure.Bar{
		"metrics_cost":  {Limit: 0.98, Least: true},
		"trace_cost":    {Limit: 0.95, Least: true},
		"scrape_10k_ms": {Limit: 100},
		"page_kib":      {Limit: 150},
		"page_ready_ms": {Limit: 1000},
		"page_key_ms":   {Limit: 50},

		"events_fanout_ms": {Limit: 500},
	}
}

func run(ctx context.Context, arguments []string, out, log io.Writer) error {
	b := &bench{Plan: measure.Plan{Rounds: 15, Span: time.Second}, report: &measure.Report{Out: out, Log: log, Bars: bars()}}
	flags := b.Flags("see", log)
	flags.StringVar((*string)(&b.guests), "guests", "build/bench", "the directory of the guests")
	flags.StringVar(&b.server, "server", "bin/toolsrv", "the server's binary")
	flags.StringVar(&b.pages, "browser", "test/browser", "the module whose tests use the pages in a browser")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	return b.report.Run(ctx, b.Plan, groups(b))
}
