package command

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/runtime/limits"
	"github.com/toolsrv/toolsrv/runtime/sandbox"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/config"
	"github.com/toolsrv/toolsrv/wasmtools/invoke"
	"github.com/toolsrv/toolsrv/wasmtools/toolfile"
)

// call holds the flags of `toolsrv call`.
type call struct {
	opener
	asJSON bool
	time   bool
}

func newCall() *cobra.Command {
	c := call{opener: opener{logLevel: slog.LevelInfo}}
	cmd := &cobra.Command{
		Use:   "call FILE [TOOL] [JSON|-]",
		Short: "Call a tool of a file once, in the sandbox",
		Long: `Call a tool of FILE once, with the validation, the defaults and the limits of a
server. TOOL is its name or its path, and may be left out where the file has one tool.
JSON are the arguments, {} where they are left out; - reads them from standard input.

The result goes to standard output, why there is none to standard error, as do the
tool's log lines. With --json the error is one object, as a server would answer it, and
nothing is logged unless --log-level is given.

Exit codes: 0 done, 1 failed (no such file, a file that a server refuses), 2 wrong
usage, and those of the call:
  3 invalid_arguments   6 tool_bad_output    9 tool_memory
  4 tool_error          7 tool_timeout      10 tool_stack
  5 tool_trapped        8 tool_fuel         11 input_too_large`,
		Example: `  toolsrv call math.wasm add '{"a": 2, "b": 3}'
  toolsrv call shout.wasm - < arguments.json
  toolsrv call --time --config toolsrv.toml math.wasm add '{"a": 2, "b": 3}'`,
		Args:              fileAnd(2, "a tool and its arguments"),
		RunE:              c.run,
		ValidArgsFunction: completeTool,
	}
	c.addFlags(cmd)
	cmd.Flags().BoolVar(&c.asJSON, "json", false, "print an error as one JSON object, as a server would answer it")
	cmd.Flags().BoolVar(&c.time, "time", false, "print what loading, compiling, the call and the reset took, to standard error")
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
	o, err := c.open(ctx, args[0], stderr)
	if err != nil {
		return err
	}
	defer o.close()
	tool, err := o.pick(name)
	if err != nil {
		return err
	}
	arguments := []byte("{}")
	if body != nil {
		if arguments, err = readArguments(*body, cmd.InOrStdin(), stderr, tool.MaxInput); err != nil {
			return err
		}
	}
	var times wasmtools.Times
	result, err := o.call(ctx, tool, arguments, &times)
	if c.time {
		o.printTimes(stderr, times, c.asJSON)
	}
	if err != nil {
		return tellFailure(stderr, err, c.asJSON)
	}
	if !bytes.HasSuffix(result, []byte("\n")) {
		result = append(result, '\n')
	}
	return writeJSON(cmd.OutOrStdout(), result)
}

// pick returns the tool that a name or a path means.
func (o *opened) pick(name string) (*wasmtools.Tool, error) {
	tools := o.module.Tools()
	if name == "" && len(tools) == 1 {
		return tools[0], nil
	}
	var names []string
	for _, t := range tools {
		if name == t.Name || "/"+strings.TrimPrefix(name, "/") == t.Path() {
			return t, nil
		}
		names = append(names, t.Name)
	}
	const most = 20
	if len(names) > most {
		names = append(names[:most], fmt.Sprintf("and %d more", len(tools)-most))
	}
	list := strings.Join(names, ", ")
	if name == "" {
		return nil, &usageError{fmt.Errorf("%s has several tools: name one of them (%s)", o.file, list)}
	}
	return nil, &usageError{fmt.Errorf("%s has no tool %q: it has %s", o.file, name, list)}
}

// printTimes tells what the phases took.
func (o *opened) printTimes(w io.Writer, t wasmtools.Times, asJSON bool) {
	phases := []struct {
		name string
		took time.Duration
		what string
	}{
		{"load", o.loadTook, "read, check and rewrite " + text.RoundSize(o.size)},
		{"compile", o.compileTook, "or take the compiled code from the cache"},
		{"ready", t.Ready, "initialise the program, make an instance"},
		{"call", t.Run, "the tool's own time"},
		{"reset", t.Reset, "make the instance as new"},
	}
	if asJSON {
		micros := map[string]float64{}
		for _, p := range phases {
			micros[p.name] = float64(p.took.Nanoseconds()) / 1e3
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"microseconds": micros}) // as all of standard error: nobody to tell
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

// An opener opens files for the commands that call their tools. Its fields are their flags.
type opener struct {
	config   string
	limits   limits.Limits // those above the configuration's
	logLevel slog.Level
}

func (o *opener) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.Var((*fileFlag)(&o.config), "config", "configuration `file` whose limits hold, instead of the defaults")
	flags.Var(limitFlag{&o.limits, "timeout", "time"}, "timeout", "`time` that a call may take, such as 200ms (default 5s)")
	flags.Var(limitFlag{&o.limits, "memory", "size"}, "memory", "`size` that the tool's memory may have, such as 16MiB (default 64MiB)")
	addLevelFlag(cmd, &o.logLevel, "of the tool's log lines that are shown")
	completeFlag(cmd, "timeout", cobra.NoFileCompletions)
	completeFlag(cmd, "memory", cobra.NoFileCompletions)
}

// An opened is a file with its tools, ready to be called. close frees it.
type opened struct {
	file                  string
	size                  int
	engine                *sandbox.Engine
	invoker               *invoke.Invoker
	module                *toolfile.Module
	loadTook, compileTook time.Duration
}

// open makes what a server would of a file. An error names it.
func (o *opener) open(ctx context.Context, file string, stderr io.Writer) (_ *opened, err error) {
	c := config.Default()
	if o.config != "" {
		if c, err = config.Load(o.config); err != nil {
			return nil, err
		}
	}
	engine, err := newEngine(ctx, c, 1, newLogger(stderr, o.logLevel))
	if err != nil {
		return nil, err
	}
	f := &opened{file: file, engine: engine, invoker: invoke.New(invoke.Options{})}
	defer func() {
		if err != nil {
			f.close()
		}
	}()
	begun := time.Now()
	content, err := toolfile.ReadFile(file)
	if err != nil {
		return nil, err
	}
	f.size = len(content)
	if f.module, err = toolfile.Load(engine, content, toolfile.Place{Folder: folderIn(c.Tools.Directory, file), Source: file}); err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	f.loadTook = time.Since(begun)
	done := showWaiting(stderr, fmt.Sprintf("compiling %s (%s)", file, text.RoundSize(f.size)))
	begun = time.Now()
	err = f.module.Compile(ctx)
	f.compileTook = time.Since(begun)
	done()
	if err == nil {
		err = f.module.Describe(ctx)
	}
	if err == nil {
		err = f.module.Build(o.limitsOver(c.LimitsFor))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", file, err)
	}
	return f, nil
}

// limitsOver returns of limits, with those of the flags above them.
func (o *opener) limitsOver(of func(path string) limits.Limits) func(path string) limits.Limits {
	return func(path string) limits.Limits { return o.limits.Over(of(path)) }
}

// call calls a tool of the file as a server does. times is told what the phases took; nil: nobody measures them.
func (f *opened) call(ctx context.Context, tool *wasmtools.Tool, arguments []byte, times *wasmtools.Times) ([]byte, error) {
	return f.invoker.Call(ctx, invoke.RouteTo(tool), &wasmtools.Call{Arguments: arguments, Principal: wasmtools.Self(), Times: times})
}

func (f *opened) close() {
	if f.module != nil {
		f.module.Close()
	}
	_ = f.engine.Close(context.Background()) // the process ends
}

// folderIn returns the folder of a file in the tools directory, with slashes, or "" where it is not below it.
func folderIn(directory, file string) string {
	abs, err := filepath.Abs(file)
	if err != nil {
		return ""
	}
	if directory, err = filepath.Abs(directory); err != nil {
		return ""
	}
	folder, err := filepath.Rel(directory, filepath.Dir(abs))
	if err != nil || !filepath.IsLocal(folder) || folder == "." {
		return ""
	}
	return filepath.ToSlash(folder)
}
