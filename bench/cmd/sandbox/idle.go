package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/guest"
	"github.com/toolsrv/toolsrv/bench/internal/measure"
	"github.com/toolsrv/toolsrv/internal/catalog"
	"github.com/toolsrv/toolsrv/internal/catalog/directory"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/toolfile"
	"github.com/toolsrv/toolsrv/runtime/limits"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/openapi"
)

// idleCommand makes this program the process whose memory is measured.
const idleCommand = "idle"

// many is the number of tools of idle and start.
const many = 1000

// held is how many bytes a process holds for many tools, in addition to what it held before.
type held struct {
	Loaded, Called int64
	Files, Maps    int
}

// idle measures the memory of tools that are loaded and compiled, in a separate process.
func (b *bench) idle(ctx context.Context) error {
	directory, err := os.MkdirTemp("", "toolsrv-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(directory)
	tools, cache := filepath.Join(directory, "tools"), filepath.Join(directory, "cache")
	if err := os.Mkdir(tools, 0o700); err != nil {
		return err
	}
	if err := b.guests.Fill(tools, many); err != nil {
		return err
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	c := exec.CommandContext(ctx, self, idleCommand, "-tools", tools, "-cache", cache, "-guests", string(b.guests))
	c.Stderr = b.report.Log
	text, err := c.Output()
	if err != nil {
		return fmt.Errorf("run the process to be measured: %w", err)
	}
	var h held
	if err := json.Unmarshal(text, &h); err != nil {
		return err
	}
	b.report.Explain("%d different small Rust tools served (catalog, schemas, documents) and compiled, none called: %d KiB each; each called once, idle since: %d KiB each, %d file descriptors and %d mappings in total",
		many, h.Loaded/many/1024, h.Called/many/1024, h.Files, h.Maps)
	b.report.Figure("idle_kib_per_tool", float64(h.Loaded)/many/1024)
	b.report.Figure("idle_called_kib_per_tool", float64(h.Called)/many/1024)
	return nil
}

// idleChild is the process that idle measures. Before the first measurement it has served and called one tool, so that everything that any server
// needs is allocated already.
func idleChild(arguments []string, out io.Writer) error {
	flags := flag.NewFlagSet(idleCommand, flag.ContinueOnError)
	tools := flags.String("tools", "", "the directory of the tools")
	guests := flags.String("guests", "", "the directory of the guests")
	cache := flags.String("cache", "", "the directory for compiled code, as a server has one")
	if err := flags.Parse(arguments); err != nil {
		return err
	}
	ctx := context.Background()
	engine, err := sandbox.New(ctx, sandbox.Config{Imports: toolfile.Imports(), CacheDir: *cache})
	if err != nil {
		return err
	}
	defer engine.Close(ctx)
	odd, err := guest.Shelf(*guests).Read(guest.Odd)
	if err != nil {
		return err
	}
	first, err := engine.Load(odd, engine.Modules()...)
	if err != nil {
		return err
	}
	defer first.Close()
	if _, err := first.Tool("grow", guest.Grow, limits.Limits{}).Call(ctx, sandbox.CallSpec{Input: []byte("{}")}); err != nil {
		return err
	}
	before, err := measure.Resident()
	if err != nil {
		return err
	}

	source, err := directory.Open(*tools, directory.Options{})
	if err != nil {
		return err
	}
	defer source.Close()
	c, err := catalog.Open(ctx, catalog.Options{Sources: []catalog.Sourced{{Source: source}}, Engine: engine})
	if err != nil {
		return err
	}
	defer c.Close()
	app := openapi.NewApp(c.Table(), openapi.Options{})
	defer app.Close()
	if n := len(c.Table().Tools()); n != many {
		return fmt.Errorf("%d of %d tools are served: %v", n, many, c.Table().Current().Refused())
	}
	if err := compileAll(ctx, engine, *tools); err != nil {
		return err
	}
	var h held
	loaded, err := measure.Resident()
	if err != nil {
		return err
	}
	for _, route := range c.Table().Tools() {
		if err := same(output)(route.Tool.Caller.Call(ctx, &wasmtools.Call{Arguments: []byte(input)})); err != nil {
			return err
		}
	}
	called, err := measure.Resident()
	if err != nil {
		return err
	}
	h.Loaded, h.Called = loaded-before, called-before
	if h.Files, err = measure.Files(); err != nil {
		return err
	}
	if h.Maps, err = measure.Maps(); err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(h)
}

// compileAll waits until the programs of a directory are compiled. The catalog has loaded them already; here each is loaded once more, only to wait
// for it.
func compileAll(ctx context.Context, engine *sandbox.Engine, directory string) error {
	entries, err := os.ReadDir(directory)
	if err != nil {
		return err
	}
	for _, e := range entries {
		module, err := os.ReadFile(filepath.Join(directory, e.Name()))
		if err != nil {
			return err
		}
		p, err := engine.Load(module, engine.Modules()...)
		if err != nil {
			return err
		}
		err = p.Compile(ctx)
		if err := errors.Join(err, p.Close()); err != nil {
			return err
		}
	}
	return nil
}

// start measures the real server from its start to its first list of all tools, with compiled code in the cache.
func (b *bench) start(ctx context.Context) error {
	directory, err := os.MkdirTemp("", "toolsrv-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(directory)
	tools, cache := filepath.Join(directory, "tools"), filepath.Join(directory, "cache")
	if err := os.Mkdir(tools, 0o700); err != nil {
		return err
	}
	if err := b.guests.Fill(tools, many); err != nil {
		return err
	}
	engine, err := sandbox.New(ctx, sandbox.Config{Imports: toolfile.Imports(), CacheDir: cache})
	if err != nil {
		return err
	}
	if err := errors.Join(compileAll(ctx, engine, tools), engine.Close(ctx)); err != nil {
		return err
	}
	config := filepath.Join(directory, "toolsrv.toml")
	text := fmt.Sprintf("[tools]\ndirectory = %q\ncache_directory = %q\n", tools, cache)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return err
	}
	times := make([]float64, 5)
	for i := range times {
		took, err := b.startOnce(ctx, config)
		if err != nil {
			return err
		}
		times[i] = millis(took)
	}
	b.report.Explain("%d modules, warm cache: start to first /tools answer in %.0f ms (median of %d starts)", many, measure.Median(times), len(times))
	b.report.Figure("start_1000_ms", measure.Median(times))
	return nil
}

// startOnce starts the server, waits for its first list of all tools, and stops it.
func (b *bench) startOnce(ctx context.Context, config string) (took time.Duration, err error) {
	port, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, err
	}
	address := port.Addr().String()
	if err := port.Close(); err != nil {
		return 0, err
	}
	server := exec.CommandContext(ctx, b.server, "openapi", "--config", config, "--address", address)
	begin := time.Now()
	if err := server.Start(); err != nil {
		return 0, err
	}
	defer func() {
		err = errors.Join(err, server.Process.Signal(os.Interrupt))
		_ = server.Wait() // its exit does not matter here
	}()
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()
	for {
		listed, err := list(client, "http://"+address+"/tools")
		took := time.Since(begin)
		if err == nil && listed == many {
			return took, nil
		}
		if took > time.Minute { // before it is ready, it lists the tools that it has so far
			return 0, errors.Join(fmt.Errorf("the server lists %d tools after a minute, not %d", listed, many), err)
		}
		select { // a request each millisecond costs the server nothing
		case <-ctx.Done():
			return 0, ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
}

// list returns the number of tools that the server lists.
func list(client *http.Client, url string) (int, error) {
	answer, err := client.Get(url)
	if err != nil {
		return 0, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return 0, errors.New(answer.Status)
	}
	var tools []json.RawMessage
	err = json.NewDecoder(answer.Body).Decode(&tools)
	return len(tools), err
}
