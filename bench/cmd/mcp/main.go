// Command mcp measures what MCP costs with the real server, each figure compared with another way to do the same, and prints one
// line "name value" for each and then one for each that falls short of its bar. Explanations go to stderr. It exits with 1
// only where something could not be measured.
//
//	mcp -guests DIRECTORY -tools DIRECTORY [-server BINARY] [-fastmcp "COMMAND"] [-only NAME,...]
//
// `make bench-mcp` builds what is needed.
package main

import (
	"context"
	"io"
	"os"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/gosdk"
	"github.com/toolsrv/toolsrv/bench/internal/guest"
	"github.com/toolsrv/toolsrv/bench/internal/load"
	"github.com/toolsrv/toolsrv/bench/internal/measure"
)

// gosdkCommand makes this program the server of package gosdk, which is a separate process like ours.
const gosdkCommand = "gosdk"

func main() {
	os.Exit(measure.Main("mcp", run, map[string]measure.Child{
		load.Command:   load.Child,
		gosdkCommand:   servePeer(gosdk.Serve),
		controlCommand: servePeer(control),
	}))
}

// A bench is one run.
type bench struct {
	measure.Plan
	guests  guest.Shelf
	tools   string // the directory of the built example tools
	server  string // the real binary
	fastmcp string // the command that serves the addition with FastMCP; "": leave it out
	report  *measure.Report
}

// groups are the figures that are measured together.
func groups(b *bench) []measure.Group {
	return []measure.Group{
		{Names: []string{"mcp_vs_rest", "mcp_vs_gosdk", "mcp_vs_fastmcp"}, Measure: b.calls},
		{Names: []string{"mcp_list_1000"}, Measure: b.list},
		{Names: []string{"mcp_cancel_ms"}, Measure: b.cancel},
		{Names: []string{"stdio_start_ms"}, Measure: b.stdio},
	}
}

// bars are what the figures must reach.
func bars() map[string]measure.Bar {
	return map[string]measure.Bar{
		"mcp_vs_rest":    {Limit: 0.7, Least: true},
		"mcp_vs_gosdk":   {Limit: 5, Least: true},
		"mcp_vs_fastmcp": {Limit: 12, Least: true},
		"mcp_list_1000":  {Limit: 2},
		"mcp_cancel_ms":  {Limit: 5},
		"stdio_start_ms": {Limit: 300},
	}
}

func run(ctx context.Context, arguments []string, out, log io.Writer) error {
	b := &bench{Plan: measure.Plan{Rounds: 7, Span: time.Second}, report: &measure.Report{Out: out, Log: log, Bars: bars()}}
	flags := b.Flags("mcp", log)
	flags.StringVar((*string)(&b.guests), "guests", "build/bench", "the directory of the built guests")
	flags.StringVar(&b.tools, "tools", "build/tools", "the directory of the built example tools")
	flags.StringVar(&b.server, "server", "bin/toolsrv", "the server's binary")
	flags.StringVar(&b.fastmcp, "fastmcp", "", "the command that serves the addition with FastMCP; it is given a port")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	return b.report.Run(ctx, b.Plan, groups(b))
}
