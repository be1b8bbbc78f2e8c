package server_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/wasmtools/gotool"
)

// TestPlacesOfToolsThatWait lets a tool call another one, which does not answer until the test ends. The configuration gives the calling
// tool a number of places: that many calls reach the other tool, and one more call is refused.
func TestPlacesOfToolsThatWait(t *testing.T) {
	t.Parallel()
	waiting := max(64, 4*runtime.GOMAXPROCS(0))
	for _, c := range []struct {
		name, text string
		want       int
	}{
		{"not configured", "", waiting},
		{"0", "limits.concurrency = 0\n", waiting},
		{"a number", "limits.concurrency = 3\n", 3},
		{"0 overrides a number", "limits.concurrency = 3\n[[override]]\nmatch = 'a/once'\nconcurrency = 0\n", waiting},
		{"an override of another limit", "limits.concurrency = 3\n[[override]]\nmatch = 'a/once'\ninput = '2KiB'\n", 3},
		{"a number overrides the default", "[[override]]\nmatch = 'a/once'\nconcurrency = 2\n", 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			manifest := `{"abi":1,"namespace":"a","tools":[{"name":"once","description":"Calls.","parameters":{"type":"object"},"needs":{"tools":["units/convert"]}}]}`
			testkit.Put(t, folder, "a.wasm", sandboxtest.WithManifest(t, testkit.Fixture(t, "wat/good/caller"), manifest))
			text := fmt.Sprintf("server.address = '127.0.0.1:0'\ntools.directory = %q\ntools.cache_directory = %q\nlimits.timeout = '2m'\nlimits.queue = 0\n", folder, t.TempDir())
			parsed, err := config.Parse([]byte(text+c.text+"[[grant]]\nmatch = 'a/once'\ntools = ['units/convert']\n"), folder)
			if err != nil {
				t.Fatal(err)
			}
			arrived, leave := make(chan struct{}), make(chan struct{})
			convert := gotool.New("units/convert", "Converts.", func(context.Context, struct{}) (int, error) {
				arrived <- struct{}{}
				<-leave
				return 7, nil
			})
			r := run(t, build(t, parsed, convert))
			r.log.Wait(t, `"msg":"ready"`)
			answers := make(chan string, c.want+1)
			for n := range c.want {
				go func() { answers <- post(t.Context(), r.url+"/a/once", `{"id":"units-convert","args":{}}`) }()
				select {
				case <-arrived:
				case got := <-answers:
					t.Fatalf("call %d of %d that wait: got %s", n+1, c.want, got)
				}
			}
			go func() { answers <- post(t.Context(), r.url+"/a/once", `{"id":"units-convert","args":{}}`) }()
			select {
			case <-arrived:
				t.Errorf("%d calls run, want %d at most", c.want+1, c.want)
			case got := <-answers:
				if !strings.Contains(got, `"code":"overloaded"`) {
					t.Errorf("one more: got %s, want it refused", got)
				}
			}
			close(leave)
			for range c.want {
				if got, want := <-answers, `{"result":7}`; got != want {
					t.Errorf("got %s, want %s", got, want)
				}
			}
		})
	}
}
