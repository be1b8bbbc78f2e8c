package server_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"

	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/config"
	"github.com/toolsrv/toolsrv/wasmtools/gotool"
	"github.com/toolsrv/toolsrv/wasmtools/server"
	"github.com/toolsrv/toolsrv/wasmtools/service"
)

// A program serves a directory of modules, and beside them a function of its own.
func ExampleNew() {
	type words struct {
		Text string `json:"text" description:"What to count the words of."`
	}
	count := gotool.New("text/words", "Count the words of a text.", func(_ context.Context, in words) (int, error) {
		return len(strings.Fields(in.Text)), nil
	})

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
	`), directory)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	tools, err := service.Open(ctx, c, service.Options{Tools: []*wasmtools.Tool{count}}) // without a Logger, it logs nothing
	if err != nil {
		fmt.Println(err)
		return
	}
	defer tools.Close()
	s, err := server.New(ctx, tools, server.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	done := make(chan error)
	go func() { done <- s.Run(ctx) }()

	answer, err := http.Post("http://"+s.Addr().String()+"/text/words", "application/json", strings.NewReader(`{"text": "to be or not to be"}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	text, err := io.ReadAll(answer.Body)
	answer.Body.Close()
	fmt.Println(answer.StatusCode, string(text), err)

	stop()
	fmt.Println(<-done)

	// Output:
	// 200 6 <nil>
	// <nil>
}
