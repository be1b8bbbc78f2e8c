package bench_test

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/core"
	"github.com/toolsrv/toolsrv/internal/manifest"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/openapi"
	"github.com/toolsrv/toolsrv/wasmtools/schema"
)

// parameters is the schema of both tools, so that validation costs both the same.
const parameters = `{"type":"object","properties":{"a":{"type":"number"},"b":{"type":"number"}},"required":["a","b"]}`

const body = `{"a": 2, "b": 3}`

// BenchmarkRequest measures one whole request over a kept-alive loopback connection: a tool that is a Go function and
// tools in the sandbox, all echoing their arguments behind the same router, validation and request handling. The usual tool gets an instance that was
// reset; a tool that changes its tables gets a new instance for every call.
func BenchmarkRequest(b *testing.B) {
	b.Run("native", func(b *testing.B) {
		table, err := wasmtools.NewRouteTable(&wasmtools.Tool{
			Namespace: "bench", Name: "echo", Description: "Return the arguments.",
			Parameters: schema.MustCompile(parameters),
			Caller: wasmtools.CallerFunc(func(_ context.Context, call *wasmtools.Call) ([]byte, error) {
				return bytes.Clone(call.Arguments), nil
			}),
		})
		if err != nil {
			b.Fatal(err)
		}
		benchmarkRequest(b, table)
	})
	for _, guest := range []struct{ name, module string }{{"sandbox", "small"}, {"sandbox new instance", "echo"}} {
		b.Run(guest.name, func(b *testing.B) {
			c := config.Default()
			c.Tools.Directory, c.Tools.CacheDir = directoryOf(b, guest.module), b.TempDir()
			s, err := core.Open(b.Context(), c, core.Options{})
			if err != nil {
				b.Fatal(err)
			}
			defer s.Close()
			if err := s.Catalog.Wait(b.Context()); err != nil {
				b.Fatal(err)
			}
			benchmarkRequest(b, s.Table)
		})
	}
}

func benchmarkRequest(b *testing.B, table *wasmtools.RouteTable) {
	app := openapi.NewApp(table, openapi.Options{Title: "bench"})
	defer app.Close()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	server := &http.Server{Handler: app}
	go server.Serve(listener)
	defer server.Close()
	url := "http://" + listener.Addr().String() + "/bench/echo"
	client := &http.Client{Transport: &http.Transport{}}
	defer client.CloseIdleConnections()

	request := func() {
		answer, err := client.Post(url, "application/json", bytes.NewReader([]byte(body)))
		if err != nil {
			b.Fatal(err)
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if err != nil || answer.StatusCode != http.StatusOK || string(text) != body {
			b.Fatalf("got %d %s (%v), want 200 %s", answer.StatusCode, text, err, body)
		}
	}
	request() // compiles the guest
	b.ReportAllocs()
	for b.Loop() {
		request()
	}
}

// directoryOf returns a tools directory with a fixture as its only tool, echo.
func directoryOf(b *testing.B, fixture string) string {
	module, err := os.ReadFile(filepath.Join("..", "testdata", "wat", "good", fixture+".wasm"))
	if err != nil {
		b.Fatal(err)
	}
	said := `{"abi":1,"namespace":"bench","tools":[{"name":"echo","description":"Return the arguments.","parameters":` + parameters + `}]}`
	module, err = wasmbin.SetCustom(module, manifest.Section, []byte(said))
	if err != nil {
		b.Fatal(err)
	}
	dir := b.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "echo.wasm"), module, 0o600); err != nil {
		b.Fatal(err)
	}
	return dir
}
