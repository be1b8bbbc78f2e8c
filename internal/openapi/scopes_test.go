package openapi_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/toolsrv/toolsrv/internal/invoker"
	"github.com/toolsrv/toolsrv/internal/openapi"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// scoped is a dependency that takes the scopes of a request from its header X-Scopes.
type scoped struct{}

func (scoped) Check(*http.Request) error { return nil }

func (scoped) Principal(r *http.Request, _ *wasmtools.Principal) (*wasmtools.Principal, error) {
	return wasmtools.NewPrincipal("test", "test", strings.Fields(r.Header.Get("X-Scopes"))...)
}

// TestDocumentsOfScopes checks that each principal's list has what it may call, at every moment.
// Proves: A caller reaches its own tools only
func TestDocumentsOfScopes(t *testing.T) {
	t.Parallel()
	table := tableOf(t, echo("math/add"), echo("math/sub"), echo("text/upper"))
	app := appOf(t, table, openapi.Options{Dependencies: []openapi.Dependency{scoped{}}})
	want := func(scopes, want string) {
		t.Helper()
		for _, path := range []string{"/tools", "/openapi.json"} {
			answer := serve(app, get(path, "X-Scopes", scopes))
			text, tag := bodyOf(t, answer), answer.Header.Get("ETag")
			var found []string
			for _, tool := range []string{"/math/add", "/math/sub", "/text/upper"} {
				if strings.Contains(text, `"`+tool+`"`) {
					found = append(found, tool)
				}
			}
			if got := strings.Join(found, " "); got != want {
				t.Errorf("%s: %q sees %q, want %q", path, scopes, got, want)
			}
			if got := serve(app, get(path, "X-Scopes", scopes, "If-None-Match", tag)).StatusCode; got != http.StatusNotModified {
				t.Errorf("%s: %q: got %d, want 304", path, scopes, got)
			}
		}
	}
	want("*", "/math/add /math/sub /text/upper")
	want("math", "/math/add /math/sub")
	want("**/upper math/add", "/math/add /text/upper")
	want("none", "")
	want("", "")
	if err := table.Disable("/math/sub", ""); err != nil {
		t.Fatal(err)
	}
	want("math", "/math/add")
	want("*", "/math/add /text/upper")
	if err := table.Enable("/math/sub"); err != nil {
		t.Fatal(err)
	}
	want("math", "/math/add /math/sub")
	var clients sync.WaitGroup // there are more sets of scopes than are kept
	for i := range 4 {
		clients.Go(func() {
			for j := range 40 {
				want(fmt.Sprintf("none-%d text", (i+j)%40), "/text/upper")
			}
		})
	}
	clients.Wait()
}

// TestSharedInvoker lets two applications share the memory for large calls.
// Proves: Limits hold, one by one and in sum
func TestSharedInvoker(t *testing.T) {
	t.Parallel()
	o := openapi.Options{Invoker: invoker.New(invoker.Options{Memory: 600 << 10})}
	first, second := appOf(t, tableOf(t, echo("echo")), o), appOf(t, tableOf(t, echo("echo")), o)
	large := `{"a":"` + strings.Repeat("x", 300<<10) + `"}`
	body := newStalled(large)
	done := make(chan int)
	go func() { done <- serve(first, sent(body, "application/json")).StatusCode }()
	<-body.waits
	if got := serve(second, post("/echo", large)).StatusCode; got != http.StatusServiceUnavailable {
		t.Errorf("beside a large call of the other application: got %d, want 503", got)
	}
	close(body.free)
	if got := <-done; got != http.StatusOK {
		t.Errorf("the large call: got %d", got)
	}
	if got := serve(second, post("/echo", large)).StatusCode; got != http.StatusOK {
		t.Errorf("alone: got %d", got)
	}
}
