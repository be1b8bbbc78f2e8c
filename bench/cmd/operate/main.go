// Command operate measures what operating a server costs those who call its tools, and how soon an operator's changes are in force. It prints
// one line "name value" for each figure and then one for each that falls short of its bar. Explanations go to stderr. It exits with 1 only
// where something could not be measured.
//
//	operate [-guests DIRECTORY] [-server BINARY] [-only NAME,...]
//
// `make bench-operate` builds what is needed.
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
	os.Exit(measure.Main("operate", run, map[string]measure.Child{load.Command: load.Child}))
}

// A bench is one run.
type bench struct {
	measure.Plan
	guests guest.Shelf
	server string // the binary
	report *measure.Report
}

// groups are the figures that are measured together.
func groups(b *bench) []measure.Group {
	return []measure.Group{
		{Names: []string{"scoped_vs_open"}, Measure: b.scoped},
		{Names: []string{"oidc_us"}, Measure: b.oidc},
		{Names: []string{"rate_us"}, Measure: b.rate},
		{Names: []string{"switch_ms"}, Measure: b.switching},
		{Names: []string{"revoke_ms"}, Measure: b.revoking},
		{Names: []string{"lists_scopes"}, Measure: b.lists},
		{Names: []string{"admin_10k_ms"}, Measure: b.listing},
	}
}

// bars are what the figures must reach.
func bars() map[string]measure.Bar {
	return map[string]measure.Bar{
		"scoped_vs_open": {Limit: 0.95, Least: true},
		"oidc_us":        {Limit: 5},
		"rate_us":        {Limit: 1},
		"switch_ms":      {Limit: 100},
		"revoke_ms":      {Limit: 0},
		"lists_scopes":   {Limit: 64},
		"admin_10k_ms":   {Limit: 300},
	}
}

func run(ctx context.Context, arguments []string, out, log io.Writer) error {
	b := &bench{Plan: measure.Plan{Rounds: 15, Span: time.Second}, report: &measure.Report{Out: out, Log: log, Bars: bars()}}
	flags := b.Flags("operate", log)
	flags.StringVar((*string)(&b.guests), "guests", "build/bench", "the directory of the guests")
	flags.StringVar(&b.server, "server", "bin/toolsrv", "the server's binary")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	return b.report.Run(ctx, b.Plan, groups(b))
}
