package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
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
	"github.com/toolsrv/toolsrv/wasmtools/web"
)

// The exit codes of `toolsrv call`, beside those of all commands. They are stable.
const (
	exitInvalidArguments = 3
	exitToolError        = 4
	exitToolTrapped      = 5
	exitToolBadOutput    = 6
	exitToolTimeout      = 7
	exitToolFuel         = 8
	exitToolMemory       = 9
	exitToolStack        = 10
	exitInputTooLarge    = 11
)

// exitOf returns the exit code that tells how a call ended.
func exitOf(code wasmtools.Code) int {
	switch code {
	case wasmtools.CodeInvalidArguments:
		return exitInvalidArguments
	case wasmtools.CodeToolError:
		return exitToolError
	case wasmtools.CodeToolTrapped:
		return exitToolTrapped
	case wasmtools.CodeToolBadOutput:
		return exitToolBadOutput
	case wasmtools.CodeToolTimeout:
		return exitToolTimeout
	case wasmtools.CodeToolFuel:
		return exitToolFuel
	case wasmtools.CodeToolMemory:
		return exitToolMemory
	case wasmtools.CodeToolStack:
		return exitToolStack
	case wasmtools.CodeInputTooLarge:
		return exitInputTooLarge
	}
	return exitFailed
}

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

// toolAndBody tells a tool's name from its arguments. Either may be left out; body is nil where it is.
func toolAndBody(args []string) (name string, body *string, err error) {
	if len(args) > 0 && args[0] == "" {
		return "", nil, &usageError{errors.New("TOOL is empty: name a tool, or leave it out where the file has one only")}
	}
	if len(args) > 0 && isToolName(args[0]) {
		name, args = args[0], args[1:]
	}
	switch len(args) {
	case 0:
		return name, nil, nil
	case 1:
		return name, &args[0], nil
	}
	return "", nil, &usageError{fmt.Errorf("unexpected argument %q after the arguments: quote the JSON, so that the shell takes it as one word", args[1])}
}

// isToolName reports whether arg can be a tool's name or path, and not JSON.
func isToolName(arg string) bool {
	return arg != "-" && wasmtools.CheckNamespace(strings.TrimPrefix(arg, "/")) == nil
}

// readArguments returns the JSON that body is, or standard input where that is "-". It reads no more than a call can have
// and one byte, so that too much is found by the same check as on a server.
func readArguments(body string, stdin io.Reader, stderr io.Writer, limit int64) ([]byte, error) {
	if body != "-" {
		return []byte(body), nil
	}
	if file, ok := stdin.(*os.File); ok && isTerminal(file) {
		fmt.Fprintln(stderr, "Type the arguments, JSON; Ctrl-D ends them.")
	}
	text, err := io.ReadAll(io.LimitReader(stdin, limit+1))
	if err != nil {
		return nil, fmt.Errorf("read the arguments from standard input: %w", err)
	}
	return text, nil
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

// tellFailure tells why a call failed, and returns the exit code for it.
func tellFailure(stderr io.Writer, err error, asJSON bool) error {
	failed, ok := errors.AsType[*wasmtools.Error](err)
	if !ok {
		failed = &wasmtools.Error{Code: wasmtools.CodeInternal, Err: err}
	}
	if asJSON {
		_, body := web.Failure(failed)
		fmt.Fprintf(stderr, "%s\n", body)
	} else {
		fmt.Fprintf(stderr, "toolsrv: %s", failureText(failed))
	}
	return &exitError{code: exitOf(failed.Code)}
}

// failureText returns an error for people, in lines, as far as its parts are there: what the client sees, and what only
// the operator's log would show.
func failureText(e *wasmtools.Error) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s: %s\n", e.Code, text.Escape(e.Message))
	for _, v := range e.Violations {
		place := make([]string, 0, len(v.Loc))
		for _, step := range v.Loc[min(1, len(v.Loc)):] { // the first says "body"
			place = append(place, fmt.Sprint(step))
		}
		switch {
		case len(place) == 0:
			place = append(place, "(all)")
		case v.Type == "json_invalid":
			place[0] = "at byte " + place[0]
		}
		fmt.Fprintf(&b, "  %s: %s%s\n", oneLine(strings.Join(place, ".")), oneLine(v.Msg), moreOf(v))
	}
	if e.ToolCode != "" {
		fmt.Fprintf(&b, "  code: %s\n", text.Escape(e.ToolCode))
	}
	if e.Status != 0 {
		fmt.Fprintf(&b, "  status: %d\n", e.Status)
	}
	if len(e.Data) > 0 {
		fmt.Fprintf(&b, "  data: %s\n", text.Escape(string(e.Data)))
	}
	if e.Err != nil {
		cause := strings.ReplaceAll(strings.TrimSpace(e.Err.Error()), "\n", "\n  ")
		fmt.Fprintf(&b, "  %s\n", text.Escape(cause))
	}
	return b.String()
}

// moreOf returns what a violation tells beside its message: what is wrong with the JSON, or a value that is short.
func moreOf(v wasmtools.Violation) string {
	const short = 40
	if cause, ok := v.Ctx["error"].(string); ok && !strings.Contains(v.Msg, cause) {
		return ": " + oneLine(cause)
	}
	if v.Type == "missing" || len(v.Input) > short {
		return ""
	}
	return " (got " + oneLine(string(v.Input)) + ")"
}

// oneLine is foreign text for one cell of a table.
func oneLine(s string) string { return strings.Join(strings.Fields(text.Escape(s)), " ") }

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

// timeText returns a time with three or four digits.
func timeText(d time.Duration) string {
	switch {
	case d >= 10*time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d >= time.Second:
		return fmt.Sprintf("%.2f s", d.Seconds())
	case d >= time.Millisecond:
		return fmt.Sprintf("%.1f ms", float64(d.Nanoseconds())/1e6)
	}
	return fmt.Sprintf("%.1f µs", float64(d.Nanoseconds())/1e3)
}

// completeTool has a shell complete to a file, and then to the names of the tools in its manifest. It runs none of it.
func completeTool(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return completeModules(cmd, args, typed)
	}
	var names []cobra.Completion
	if content, err := toolfile.ReadFile(args[0]); err == nil && len(args) == 1 {
		if r, err := toolfile.Inspect(content); err == nil && r.Manifest != nil {
			for _, t := range r.Manifest.Tools {
				if strings.HasPrefix(t.Name, typed) {
					names = append(names, cobra.CompletionWithDesc(t.Name, oneLine(firstLine(t.Description))))
				}
			}
		}
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// fileAnd takes a file and up to most further arguments, what they are in words.
func fileAnd(most int, what string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) == 0 || args[0] == "":
			return fmt.Errorf("FILE is missing: name a .wasm file, as in %s", firstExample(cmd))
		case len(args) > 1+most && most == 0:
			return fmt.Errorf("unexpected argument %q: %s takes one file", args[1], cmd.CommandPath())
		case len(args) > 1+most:
			return fmt.Errorf("unexpected argument %q: %s takes a file, and %s", args[1+most], cmd.CommandPath(), what)
		}
		return nil
	}
}

func firstExample(cmd *cobra.Command) string {
	return firstLine(cmd.Example)
}

// logNothing is a level above all others.
const logNothing = slog.Level(math.MaxInt32)

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

// A limitFlag is a flag that sets a limit, within the bounds of the configuration file.
type limitFlag struct {
	limits    *limits.Limits
	key, kind string
}

func (f limitFlag) Set(text string) error { return config.SetLimit(f.limits, f.key, text) }
func (f limitFlag) String() string        { return "" }
func (f limitFlag) Type() string          { return f.kind }

// A fileFlag names a file. It can't be set to nothing: an unset variable in a script must not mean the default.
type fileFlag string

func (f *fileFlag) Set(name string) error {
	if name == "" {
		return errors.New("it is empty: name a file or leave it out")
	}
	*f = fileFlag(name)
	return nil
}

func (f *fileFlag) String() string { return string(*f) }
func (f *fileFlag) Type() string   { return "file" }

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
