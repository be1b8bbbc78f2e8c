package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/measure"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/toolfile"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

// The input of the tool add, and its output.
const (
	input  = `{"a": 2, "b": 3}`
	output = `5`
)

// A guest is a tool in a sandbox as a server would use it, with the default limits.
type guest struct {
	engine  *sandbox.Engine
	program *sandbox.Program
	tool    *sandbox.Tool
}

// guest builds a script, and returns its only tool.
func (b *bench) guest(ctx context.Context, script string) (*guest, error) {
	module, err := b.tool(ctx, script)
	if err != nil {
		return nil, err
	}
	engine, err := sandbox.New(ctx, sandbox.Config{Imports: toolfile.Imports()})
	if err != nil {
		return nil, err
	}
	program, err := engine.Load(module, engine.Modules()...)
	if err == nil {
		err = program.Compile(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, engine.Close(ctx))
	}
	return &guest{engine, program, program.Tool("bench", 0, limits.Limits{})}, nil
}

func (g *guest) close(ctx context.Context) error {
	g.program.Close()
	return g.engine.Close(ctx)
}

// turn calls the tool for a span of time, and returns the median time of a call. Each call's output must be want; "" accepts any output.
func (g *guest) turn(ctx context.Context, span time.Duration, arguments, want string) (time.Duration, error) {
	var times []time.Duration
	for end := time.Now().Add(span); len(times) == 0 || time.Now().Before(end); {
		begin := time.Now()
		got, err := g.tool.Call(ctx, sandbox.CallSpec{Input: []byte(arguments)})
		times = append(times, time.Since(begin))
		if err != nil {
			return 0, err
		}
		if want != "" && string(got) != want {
			return 0, fmt.Errorf("got %s, want %s", got, want)
		}
	}
	slices.Sort(times)
	return times[len(times)/2], nil
}

// add returns the median over the rounds of the median time of a call, in microseconds.
func (b *bench) add(ctx context.Context, script string) (float64, error) {
	g, err := b.guest(ctx, script)
	if err != nil {
		return 0, err
	}
	var rounds []float64
	for range b.Rounds {
		took, err := g.turn(ctx, b.Span, input, output)
		if err != nil {
			return 0, errors.Join(err, g.close(ctx))
		}
		rounds = append(rounds, took.Seconds()*1e6)
	}
	return measure.Median(rounds), g.close(ctx)
}

func (b *bench) addJavaScript(ctx context.Context) error {
	took, err := b.add(ctx, "add.ts")
	if err == nil {
		b.report.Figure("js_add_us", took)
	}
	return err
}

// addPython compares a call with the usual way to isolate Python code: a process for each call.
func (b *bench) addPython(ctx context.Context) error {
	took, err := b.add(ctx, "add.py")
	if err != nil {
		return err
	}
	b.report.Figure("py_add_us", took)
	const code = "import json, sys; a = json.loads(sys.argv[1]); print(a['a'] + a['b'])"
	var processes []float64
	for range 10 * b.Rounds {
		begin := time.Now()
		got, err := exec.CommandContext(ctx, b.python, "-c", code, input).Output()
		processes = append(processes, time.Since(begin).Seconds()*1e6)
		if err != nil || strings.TrimSpace(string(got)) != output {
			return fmt.Errorf("python -c: got %q, %v, want %s", got, err, output)
		}
	}
	b.report.Explain("python -c: %.1f ms", measure.Median(processes)/1e3)
	b.report.Figure("py_vs_process", measure.Median(processes)/took)
	return nil
}

// native compares the tool that sums up a log with the same function in one long-running native process, with JSON in and out on both sides.
func (b *bench) native(ctx context.Context) (err error) {
	text, err := json.Marshal(map[string]string{"log": accessLog()})
	if err != nil {
		return err
	}
	g, err := b.guest(ctx, "logs.py")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, g.close(ctx)) }()
	child := exec.CommandContext(ctx, b.python, filepath.Join(b.scripts, "native.py"), filepath.Join(b.scripts, "logs.py"), "summarise", fmt.Sprint(b.Span.Seconds()))
	child.Env = append(child.Environ(), "PYTHONPATH="+filepath.Join(b.scripts, "../../sdk/python"))
	child.Stderr = b.report.Log
	in, err1 := child.StdinPipe()
	out, err2 := child.StdoutPipe()
	if err := errors.Join(err1, err2); err != nil {
		return err
	}
	if err := child.Start(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, in.Close(), child.Wait()) }()
	// The arguments include the default that the server would have filled in.
	arguments := strings.TrimSuffix(string(text), "}") + `, "top": 10}`
	if _, err := io.WriteString(in, arguments+"\n"); err != nil {
		return err
	}
	lines := bufio.NewScanner(out)
	var ours, ratios []float64
	for range b.Rounds {
		took, err := g.turn(ctx, b.Span, arguments, "")
		if err != nil {
			return err
		}
		if _, err := io.WriteString(in, "turn\n"); err != nil {
			return err
		}
		if !lines.Scan() {
			return fmt.Errorf("the native process ended: %w", lines.Err())
		}
		native, err := strconv.ParseFloat(lines.Text(), 64)
		if err != nil {
			return err
		}
		ours, ratios = append(ours, took.Seconds()*1e6), append(ratios, float64(took.Nanoseconds())/native)
	}
	b.report.Explain("the log tool: %.0f µs in the sandbox", measure.Median(ours))
	b.report.Figure("py_vs_native", measure.Median(ratios))
	return nil
}

// accessLog returns 2.5 KB of a web server's log.
func accessLog() string {
	var log strings.Builder
	for i := 0; log.Len() < 2500; i++ {
		path := []string{"/", "/items/%d?from=search", "/cart", "/items/%d/pictures", "/login"}[i%5]
		if strings.Contains(path, "%d") {
			path = fmt.Sprintf(path, 100+i*7%40)
		}
		fmt.Fprintf(&log, "10.0.%d.%d - - [22/Nov/2026:%02d:%02d:13 +0000] \"%s %s HTTP/1.1\" %d %d\n", i%3, i%17, 8+i%4, i%60,
			[]string{"GET", "POST"}[i%7/6], path, []int{200, 200, 304, 404, 200, 500}[i%6], 200+i*131%9000)
	}
	return log.String()
}
