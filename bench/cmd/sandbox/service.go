package main

import (
	"context"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"

	"github.com/toolsrv/toolsrv/bench/internal/guest"
	"github.com/toolsrv/toolsrv/internal/core"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/config"
	"github.com/toolsrv/toolsrv/wasmtools/openapi"
)

// A served table is one over HTTP on a loopback port.
type served struct {
	table   *wasmtools.RouteTable
	app     *openapi.App
	http    *http.Server
	address string
	after   func() // frees what the table needs
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
