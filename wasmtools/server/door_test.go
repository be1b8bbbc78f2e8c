package server_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"

	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/config"
	"github.com/toolsrv/toolsrv/wasmtools/gotool"
	"github.com/toolsrv/toolsrv/wasmtools/invoke"
	"github.com/toolsrv/toolsrv/wasmtools/server"
	"github.com/toolsrv/toolsrv/wasmtools/service"
	"github.com/toolsrv/toolsrv/wasmtools/web"
)

// A metrics door tells how much stock there is, for a system that collects such numbers. It finds that out with a tool.
type metrics struct{ of *service.Service }

// Serve answers one request. By then the mux has checked host, origin and token.
func (m metrics) Serve(x *web.Exchange) {
	call := x.Call()
	route, err := invoke.Find(x.Generation(), "/shop/stock", call.Principal)
	if err != nil {
		x.Fail(err)
		return
	}
	stock, err := m.of.Invoker().Call(x.Context(), route, call)
	if err != nil {
		x.Fail(err)
		return
	}
	x.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, _ = fmt.Fprintf(x, "shop_stock %s\n", stock) // if writing fails, the client has gone
}

// A program adds a door of its own to the server's.
func ExampleOptions() {
	stock := gotool.New("shop/stock", "Tell how much there is.", func(context.Context, struct{}) (int, error) { return 12, nil })
	directory, err := os.MkdirTemp("", "tools") // in your program: the folder of the modules
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(directory)
	c, err := config.Parse([]byte(`
		server.address = "127.0.0.1:0"      # any port that is free
		tools.directory = "."
		tools.cache_directory = ".cache"    # names that begin with a dot are not tools
		auth.tokens = ["of-the-collector"]
	`), directory)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	tools, err := service.Open(ctx, c, service.Options{Tools: []*wasmtools.Tool{stock}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer tools.Close()
	s, err := server.New(ctx, tools, server.Options{Doors: map[string]web.Door{"/metrics": metrics{tools}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()

	for _, token := range []string{"of-the-collector", "guessed"} {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+s.Addr().String()+"/metrics", nil)
		if err != nil {
			fmt.Println(err)
			return
		}
		request.Header.Set("Authorization", "Bearer "+token)
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			fmt.Println(err)
			return
		}
		text, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		fmt.Println(answer.StatusCode, string(text), err)
	}

	stop()
	fmt.Println(<-done)

	// Output:
	// 200 shop_stock 12
	//  <nil>
	// 401 {"detail":"Invalid or missing bearer token","code":"unauthorized"} <nil>
	// <nil>
}
