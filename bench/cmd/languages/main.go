// Command languages measures what tools in Python and JavaScript cost, each figure compared with another way to do the same if there is one, and
// prints one line "name value" for each and then one for each that falls short of its bar. Explanations go to stderr. It exits with 1 only where
// something could not be measured.
//
//	languages [-server BINARY] [-scripts DIRECTORY] [-python BINARY] [-fastapi "COMMAND"] [-only NAME,...]
//
// The server's binary must contain the engines. `make bench-languages` builds what is needed.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/load"
	"github.com/toolsrv/toolsrv/bench/internal/measure"
)

func main() {
	os.Exit(measure.Main("languages", run, map[string]measure.Child{load.Command: load.Child}))
}

// A bench is one run.
type bench struct {
	measure.Plan
	server  string // the real binary, which also builds the scripts
	scripts string // the directory with add.py and the other scripts
	python  string // the interpreter to compare ours with
	fastapi string // the command that serves the addition with FastAPI; "": leave it out
	built   string // the directory of the built scripts
	report  *measure.Report
}

// groups are the figures that are measured together.
func (b *bench) groups() []measure.Group {
	return []measure.Group{
		{Names: []string{"build_s"}, Measure: b.build},
		{Names: []string{"js_add_us"}, Measure: b.addJavaScript},
		{Names: []string{"py_add_us", "py_vs_process"}, Measure: b.addPython},
		{Names: []string{"py_vs_native"}, Measure: b.native},
		{Names: []string{"py_second_tool_mib", "py_start_ms"}, Measure: b.furtherPython},
		{Names: []string{"js_second_tool_mib", "js_start_ms"}, Measure: b.furtherJavaScript},
		{Names: []string{"py_http_vs_fastapi"}, Measure: b.http},
	}
}

// bars are what the figures must reach.
func bars() map[string]measure.Bar {
	return map[string]measure.Bar{
		"js_add_us":          {Limit: 10},
		"py_add_us":          {Limit: 25},
		"py_vs_process":      {Limit: 500, Least: true},
		"py_vs_native":       {Limit: 8},
		"py_second_tool_mib": {Limit: 6},
		"js_second_tool_mib": {Limit: 1},
		"py_start_ms":        {Limit: 300},
		"js_start_ms":        {Limit: 150},
		"py_http_vs_fastapi": {Limit: 4, Least: true},
		"build_s":            {Limit: 0.5},
	}
}

func run(ctx context.Context, arguments []string, out, log io.Writer) (err error) {
	b := &bench{Plan: measure.Plan{Rounds: 7, Span: 500 * time.Millisecond}, report: &measure.Report{Out: out, Log: log, Bars: bars()}}
	flags := b.Flags("languages", log)
	flags.StringVar(&b.server, "server", "bin/toolsrv", "the server's binary")
	flags.StringVar(&b.scripts, "scripts", "bench/scripts", "the directory of the scripts")
	flags.StringVar(&b.python, "python", "python3", "the interpreter to compare with")
	flags.StringVar(&b.fastapi, "fastapi", "", "the command that serves the addition with FastAPI; it is given a port")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	if b.server, err = filepath.Abs(b.server); err != nil {
		return err
	}
	if b.built, err = os.MkdirTemp("", "toolsrv-languages-"); err != nil {
		return err
	}
	defer os.RemoveAll(b.built)
	if err := b.findPython(ctx); err != nil {
		return err
	}
	return b.report.Run(ctx, b.Plan, b.groups())
}

// findPython looks for the interpreter itself: python3 in PATH may be a script that looks for the interpreter, which takes time and would make ours
// look better.
func (b *bench) findPython(ctx context.Context) error {
	text, err := exec.CommandContext(ctx, b.python, "-c", "import sys; print(sys.executable); print(sys.version.split()[0])").Output()
	lines := strings.Fields(string(text))
	if err != nil || len(lines) != 2 {
		return fmt.Errorf("%s does not say where it is: %w", b.python, err)
	}
	b.python = lines[0]
	b.report.Explain("compared with CPython %s", lines[1])
	return nil
}

// tool builds a script and returns the module.
func (b *bench) tool(ctx context.Context, script string) ([]byte, error) {
	file := filepath.Join(b.built, script+".wasm")
	if err := b.compile(ctx, filepath.Join(b.scripts, script), file); err != nil {
		return nil, err
	}
	return os.ReadFile(file)
}

// compile builds the script at a path.
func (b *bench) compile(ctx context.Context, script, file string) error {
	out, err := exec.CommandContext(ctx, b.server, "build", script, "-o", file).CombinedOutput()
	if err != nil {
		return fmt.Errorf("build %s: %w\n%s", script, err, out)
	}
	return nil
}

// build measures how long an author waits for each language's smallest script.
func (b *bench) build(ctx context.Context) error {
	slowest := 0.0
	for _, script := range []string{"add.py", "add.ts"} {
		if _, err := b.tool(ctx, script); err != nil { // so that the engine is compiled, as it is after an author's first build
			return err
		}
		var took []float64
		for range b.Rounds {
			begin := time.Now()
			if _, err := b.tool(ctx, script); err != nil {
				return err
			}
			took = append(took, time.Since(begin).Seconds())
		}
		b.report.Explain("toolsrv build %s: %.3f s", script, measure.Median(took))
		slowest = max(slowest, measure.Median(took))
	}
	b.report.Figure("build_s", slowest)
	return nil
}
