package browser_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"testing"

	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/config"
	"github.com/toolsrv/toolsrv/wasmtools/gotool"
	"github.com/toolsrv/toolsrv/wasmtools/server"
	"github.com/toolsrv/toolsrv/wasmtools/service"
)

// serve runs a server until the test ends, and returns its address. settings are lines of its configuration, in a folder of its own.
func serve(t *testing.T, settings string, tools ...*wasmtools.Tool) string {
	t.Helper()
	return serveAs(t, func() string { return settings }, tools...)
}

// serveAs is serve with settings that may have changed when the server reads them again.
func serveAs(t *testing.T, settings func() string, tools ...*wasmtools.Tool) string {
	t.Helper()
	dir := t.TempDir()
	read := func() (*config.Config, error) {
		return config.Parse([]byte("server.address = '127.0.0.1:0'\ntools.directory = '.'\ntools.cache_directory = '.cache'\n"+settings()), dir)
	}
	c, err := read()
	if err != nil {
		t.Fatal(err)
	}
	opened, err := service.Open(t.Context(), c, service.Options{Tools: tools, Volatile: true, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.New(t.Context(), opened, server.Options{Load: read})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		if err := opened.Close(); err != nil {
			t.Error(err)
		}
	})
	return "http://" + s.Addr().String()
}

type numbers struct {
	A float64 `json:"a" description:"The first number."`
	B float64 `json:"b" description:"The second number."`
}

// add adds two numbers, and divide divides them.
func add() *wasmtools.Tool {
	return gotool.New("math/add", "Add two numbers.", func(_ context.Context, in numbers) (float64, error) { return in.A + in.B, nil })
}

func divide() *wasmtools.Tool {
	return gotool.New("math/divide", "Divide two numbers.", func(_ context.Context, in numbers) (float64, error) {
		if in.B == 0 {
			return 0, &wasmtools.Error{Code: wasmtools.CodeToolError, Message: "b is 0"}
		}
		return in.A / in.B, nil
	})
}

// many returns n tools, /many/n0/tool0 and so on, in 100 namespaces.
func many(n int) (all []*wasmtools.Tool) {
	for i := range n {
		name := fmt.Sprintf("many/n%d/tool%d", i%100, i)
		all = append(all, gotool.New(name, fmt.Sprintf("Return the number %d.", i), func(context.Context, struct{}) (int, error) { return i, nil }))
	}
	return all
}
