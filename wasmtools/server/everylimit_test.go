package server_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/runtime/limittable"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// TestEveryLimit lets a guest break each limit of the table, which a configuration file sets for that guest alone. So it covers the whole way from
// the file to the sandbox. A limit without a case fails the test, since it may be documented but never enforced.
func TestEveryLimit(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		set   string // the value in the file
		tool  string // the source of the guest that breaks it
		calls int    // how many calls at the same time; 0 means 1
		says  string // a part of the first answer
		code  string // the code of the first answer
		logs  string // a part of the log, if the answer does not show it
	}{
		"timeout":     {set: "timeout = '50ms'", tool: "spin", says: "limit of 50ms", code: "tool_timeout"},
		"fuel":        {set: "fuel = 123_456", tool: "spin", says: "its limit of 123456 instructions", code: "tool_fuel"},
		"memory":      {set: "memory = '3MiB'", tool: "grow", says: "its limit of 3 MiB", code: "tool_memory"},
		"stack":       {set: "stack = '17KiB'", tool: "recurse", says: "its call stack of 17 KiB", code: "tool_stack"},
		"input":       {set: "input = 9", tool: "echo", says: "larger than 9 bytes", code: "input_too_large"},
		"output":      {set: "output = 9", tool: "echo", says: "its limit of 9 bytes", code: "tool_bad_output"},
		"log_lines":   {set: "log_lines = 0", tool: "wait", logs: `"msg":"further lines dropped","tool":"/log_lines/wait"`},
		"concurrency": {set: "concurrency = 3\nqueue = 0", tool: "wait", calls: 4, code: "overloaded"},
		"queue":       {set: "queue = 0", tool: "wait", calls: 5, code: "overloaded"},
	}
	folder := t.TempDir()
	file := fmt.Sprintf("server.address = '127.0.0.1:0'\ntools.directory = %q\ntools.cache_directory = %q\nlimits.concurrency = 4\nlimits.timeout = '30s'\n",
		folder, t.TempDir())
	for _, e := range limittable.All() {
		c, ok := cases[e.Key]
		if !ok {
			t.Fatalf("the limit %q has no case: say here how a guest breaks it", e.Key)
		}
		file += fmt.Sprintf("[[override]]\nmatch = '%s/*'\n%s\n", e.Key, c.set)
		testkit.Put(t, folder, e.Key+".wasm", guest(t, e.Key))
	}
	c, err := config.Load(testkit.Put(t, t.TempDir(), "toolsrv.toml", file))
	if err != nil {
		t.Fatal(err)
	}
	r := start(t, c)
	for key, c := range cases {
		t.Run(key, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			answers := make(chan string)
			for range max(1, c.calls) {
				go func() {
					select {
					case answers <- post(ctx, r.url+"/"+key+"/"+c.tool, `{"a": "word"}`):
					case <-ctx.Done():
					}
				}()
			}
			if c.logs != "" {
				r.log.Wait(t, c.logs)
			} else if got := <-answers; !strings.Contains(got, c.says) || !strings.Contains(got, `"code":"`+c.code+`"`) {
				t.Errorf("got %s, want %q and the code %s", got, c.says, c.code)
			}
		})
	}
}

// TestDefaultInput compares the default in package wasmtools with the one in the table.
func TestDefaultInput(t *testing.T) {
	t.Parallel()
	if got := limittable.Default().Input; got != wasmtools.DefaultMaxInput {
		t.Errorf("the limit input is %d by default, and wasmtools.DefaultMaxInput is %d", got, wasmtools.DefaultMaxInput)
	}
}

// post returns the body of the answer, or the error.
func post(ctx context.Context, url, body string) string {
	q, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
	if err != nil {
		return err.Error()
	}
	q.Header.Set("Content-Type", "application/json")
	a, err := http.DefaultClient.Do(q)
	if err != nil {
		return err.Error()
	}
	defer a.Body.Close()
	text, err := io.ReadAll(a.Body)
	if err != nil {
		return err.Error()
	}
	return string(text)
}
