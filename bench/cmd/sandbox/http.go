package main

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/toolsrv/toolsrv/bench/internal/guest"
	"github.com/toolsrv/toolsrv/bench/internal/load"
	"github.com/toolsrv/toolsrv/bench/internal/measure"
	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/core"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/openapi"
	"github.com/toolsrv/toolsrv/wasmtools/schema"
)

// http compares a sandboxed tool with a Go function that does the same, behind the same router and validation.
func (b *bench) http(ctx context.Context) error {
	small, err := b.guests.Read(guest.Small)
	if err != nil {
		return err
	}
	sandboxed, err := b.serve(ctx, func(directory string) error { return put(directory, small, guest.Parameters, "add") })
	if err != nil {
		return err
	}
	defer sandboxed.close(ctx)
	table, err := wasmtools.NewRouteTable(&wasmtools.Tool{
		Namespace: "bench", Name: "add", Description: "A tool of the benchmarks.",
		Parameters: schema.MustCompile(guest.Parameters), Caller: wasmtools.CallerFunc(add),
	})
	if err != nil {
		return err
	}
	native, err := newService(table, func() {})
	if err != nil {
		return err
	}
	defer native.close(ctx)
	const connections = 16
	ratios, rates := make([]float64, b.Rounds), make([]float64, b.Rounds)
	for i := range ratios {
		ours, err := b.generate(ctx, sandboxed, connections, time.Second)
		if err != nil {
			return err
		}
		theirs, err := b.generate(ctx, native, connections, time.Second)
		if err != nil {
			return err
		}
		ratios[i], rates[i] = ours.Rate/theirs.Rate, ours.Rate
	}
	b.report.Explain("HTTP on loopback, %d kept-alive connections from a second process on the same cores: %.0f calls/s of the sandboxed tool", connections, measure.Median(rates))
	b.report.Figure("http_vs_native", measure.Median(ratios))
	b.report.Figure("http_calls_per_s", measure.Median(rates))
	return nil
}

// add is small.rs in Go.
func add(_ context.Context, call *wasmtools.Call) ([]byte, error) {
	var in struct{ A, B int64 }
	if err := json.Unmarshal(call.Arguments, &in); err != nil {
		return nil, err
	}
	return strconv.AppendInt(nil, in.A+in.B, 10), nil
}

// generate starts a process that calls the tool bench/add of a service.
func (b *bench) generate(ctx context.Context, s *served, connections int, span time.Duration) (load.Seen, error) {
	return load.Generate(ctx, load.Load{
		Host: s.address, Text: load.Request(s.address, "/bench/add", input), Answer: output, Connections: connections, Span: span,
	}, b.report.Log)
}

// A served is a route table that is served over HTTP on a loopback port.
type served struct {
	table   *wasmtools.RouteTable
	app     *openapi.App
	http    *http.Server
	address string
	after   func() // frees the resources of the table
}

// serve serves the modules that fill puts into a directory.
func (b *bench) serve(ctx context.Context, fill func(directory string) error) (_ *served, err error) {
	folder, err := os.MkdirTemp("", "toolsrv-bench-")
	if err != nil {
		return nil, err
	}
	var closers []func()
	closeAll := func() {
		for _, c := range slices.Backward(closers) {
			c()
		}
	}
	defer func() {
		if err != nil {
			closeAll()
		}
	}()
	closers = append(closers, func() { os.RemoveAll(folder) })
	if err := fill(folder); err != nil {
		return nil, err
	}
	c := config.Default()
	c.Tools.Directory, c.Tools.CacheDir = folder, filepath.Join(folder, ".cache") // names that begin with a dot are not tools
	tools, err := core.Open(ctx, c, core.Options{})
	if err != nil {
		return nil, err
	}
	closers = append(closers, func() { tools.Close() })
	if err := tools.Catalog.Wait(ctx); err != nil {
		return nil, err
	}
	return newService(tools.Table, closeAll)
}

// newService serves a table; after is called by close, unless newService fails.
func newService(table *wasmtools.RouteTable, after func()) (*served, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	s := &served{table: table, app: openapi.NewApp(table, openapi.Options{Title: "bench"}), address: listener.Addr().String(), after: after}
	s.http = &http.Server{Handler: s.app}
	go s.http.Serve(listener) // until close
	return s, nil
}

func (s *served) close(context.Context) {
	s.http.Close()
	s.app.Close()
	s.after()
}

// caller returns the tool at a path, without HTTP, or nil.
func (s *served) caller(path string) wasmtools.Caller {
	if route, ok := s.table.Current().Lookup(path); ok {
		return route.Tool.Caller
	}
	return nil
}

func (s *served) refused() []wasmtools.Refusal { return s.table.Current().Refused() }

// put writes a module with its manifest to directory, named after its first tool.
func put(directory string, module []byte, parameters string, tools ...string) error {
	module, err := guest.Describe(module, parameters, tools...)
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(directory, tools[0]+".wasm"), module, 0o600)
}
