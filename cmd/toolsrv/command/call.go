package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolsrv/toolsrv/internal/author/workbench"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/misfit"
)

// call holds the flags of `toolsrv call`.
type call struct {
	fileFlags
	asJSON   bool
	time     bool
	progress bool
}

func newCall() *cobra.Command {
	c := call{fileFlags: fileFlags{logLevel: slog.LevelInfo}}
	cmd := &cobra.Command{
		Use:   "call FILE [TOOL] [JSON|-]",
		Short: "Call a tool of a file once, in the sandbox",
		Long: `Call a tool of FILE once, with the validation, defaults and limits of a server. TOOL is its name or
its path, and may be left out if the file has only one. JSON is the arguments, {} by default; -
reads it from standard input.

The result goes to standard output; an error and the tool's log lines go to standard error. With
--json the error is one object, as a server would return it, and nothing is logged unless
--log-level is given. A terminal shows the progress that the tool reports while the call runs.

Exit codes: 0 done, 1 failed (no such file, a file that a server refuses), 2 wrong
usage, and those of the call:
  3 invalid_arguments   6 tool_bad_output    9 tool_memory
  4 tool_error          7 tool_timeout      10 tool_stack
  5 tool_trapped        8 tool_fuel         11 input_too_large
  12 tool_not_granted: grant it with --allow-http, --secret or --grant`,
		Example: `  toolsrv call math.wasm add '{"a": 2, "b": 3}'
  toolsrv call shout.wasm - < arguments.json
  toolsrv call weather.wasm --allow-http https://api.example.com '{"city": "Paris"}'
  toolsrv call --time --config toolsrv.toml math.wasm add '{"a": 2, "b": 3}'`,
		Args:              fileAnd(2, "a tool and its arguments"),
		RunE:              c.run,
		ValidArgsFunction: completeTool,
	}
	c.add(cmd)
	cmd.Flags().BoolVar(&c.asJSON, "json", false, "print an error as one JSON object, as a server would return it")
	cmd.Flags().BoolVar(&c.time, "time", false, "print to standard error how long loading, compiling, the call and the reset took")
	cmd.Flags().BoolVar(&c.progress, "progress", false, "print the tool's progress to standard error, even if that is not a terminal")
	return cmd
}

func (c *call) run(cmd *cobra.Command, args []string) error {
	name, body, err := toolAndBody(args[1:])
	if err != nil {
		return err
	}
	ctx, stop := untilInterrupted(cmd.Context())
	defer stop()
	stderr := cmd.ErrOrStderr()
	if c.asJSON && !cmd.Flags().Changed("log-level") {
		c.logLevel = logNothing
	}
	file, err := c.open(ctx, args[0], stderr)
	if err != nil {
		return err
	}
	defer file.Close()
	tool, err := file.Pick(name)
	if err != nil {
		return &usageError{err}
	}
	arguments := []byte("{}")
	if body != nil {
		if arguments, err = readArguments(*body, cmd.InOrStdin(), stderr, tool.MaxInput); err != nil {
			return err
		}
	}
	var times wasmtools.Times
	call := &wasmtools.Call{Arguments: arguments, Times: &times}
	var line *progressLine
	if c.progress || !cmd.Flags().Changed("progress") && !c.asJSON && isTerminal(stderr) {
		line = newProgressLine(stderr, c.asJSON)
		call.Listener = line
	}
	result, err := file.Call(ctx, tool, call)
	if line != nil {
		line.clear()
	}
	if c.time {
		printTimes(stderr, file, times, c.asJSON)
	}
	if err != nil {
		told := tellFailure(stderr, err, c.asJSON)
		if !c.asJSON {
			tellHow(stderr, err, tool)
			tellMissing(stderr, tool)
		}
		return told
	}
	if !bytes.HasSuffix(result, []byte("\n")) {
		result = append(result, '\n')
	}
	return writeJSON(cmd.OutOrStdout(), result)
}

// tellHow prints how to write arguments, if they are not JSON.
func tellHow(w io.Writer, err error, tool *wasmtools.Tool) {
	failed, ok := errors.AsType[*wasmtools.Error](err)
	if ok && slices.ContainsFunc(failed.Violations, func(v misfit.Violation) bool { return v.Type == "json_invalid" }) {
		fmt.Fprintf(w, "  what to do: write the arguments as one JSON object, such as %s, or - to read it from standard input\n", text.Escape(text.ShellQuote(sampleArguments(tool))))
	}
}

// printTimes prints how long the phases took.
func printTimes(w io.Writer, file *workbench.File, t wasmtools.Times, asJSON bool) {
	phases := []struct {
		name string
		took time.Duration
		what string
	}{
		{"load", file.Load, "read, check and rewrite " + text.RoundSize(file.Size)},
		{"compile", file.Compile, "or take the compiled code from the cache"},
		{"ready", t.Ready, "initialise the program, make an instance"},
		{"call", t.Run, "the tool's own time"},
		{"reset", t.Reset, "reset the instance"},
	}
	if asJSON {
		micros := map[string]float64{}
		for _, p := range phases {
			micros[p.name] = float64(p.took.Nanoseconds()) / 1e3
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"microseconds": micros}) // errors of standard error can't be reported anywhere
		return
	}
	if t.Reset == 0 {
		phases[4].what = "not reset: the instance was closed"
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
	for _, p := range phases {
		fmt.Fprintf(table, "%s\t%s\t  %s\n", p.name, timeText(p.took), p.what)
	}
	_ = table.Flush()
}
