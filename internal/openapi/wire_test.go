package openapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/openapi"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// For an internal error the client gets an id, under which the log has the cause. A panic does not end the connection.
// Proves: Answers and logs show what is meant to be seen
func TestInternalOverTheWire(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	app := appOf(t, tableOf(t, echo("echo"), failing("broken", &wasmtools.Error{Code: wasmtools.CodeInternal, Err: errors.New("hunter2")}),
		tool("panics", func(context.Context, *wasmtools.Call) ([]byte, error) { panic("hunter2") })),
		openapi.Options{Logger: slog.New(slog.NewJSONHandler(&log, nil))})
	server := httptest.NewServer(app)
	ids := map[string]string{}
	for _, path := range []string{"/broken", "/panics", "/echo"} {
		a, err := server.Client().Post(server.URL+path, "application/json", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		text := bodyOf(t, a)
		a.Body.Close()
		if path == "/echo" {
			if a.StatusCode != http.StatusOK {
				t.Errorf("%s: got %d", path, a.StatusCode)
			}
			continue
		}
		var got struct {
			Code      string
			RequestID string `json:"request_id"`
		}
		if err := json.Unmarshal([]byte(text), &got); err != nil || a.StatusCode != http.StatusInternalServerError || got.Code != "internal" ||
			got.RequestID == "" || got.RequestID != a.Header.Get("X-Request-Id") || strings.Contains(text, "hunter2") {
			t.Errorf("%s: got %d %s (%v), X-Request-Id %q", path, a.StatusCode, text, err, a.Header.Get("X-Request-Id"))
		}
		ids[path] = got.RequestID
	}
	server.Close() // this waits for the log lines
	for _, text := range strings.Split(strings.TrimSpace(log.String()), "\n") {
		var line struct {
			Level, Path, Error string
			RequestID          string `json:"request_id"`
		}
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatal(err)
		}
		if line.Path == "/echo" {
			continue
		}
		if line.Level != "ERROR" || !strings.Contains(line.Error, "hunter2") || line.RequestID != ids[line.Path] {
			t.Errorf("%s has the line %s, want the cause under the id %s", line.Path, text, ids[line.Path])
		}
		delete(ids, line.Path)
	}
	if len(ids) > 0 {
		t.Errorf("not in the log: %v", ids)
	}
}

// Running calls are not cut off if their tool is switched off or removed.
func TestRunningCallsGoOn(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*wasmtools.RouteTable) error{
		"disabled": func(table *wasmtools.RouteTable) error { return table.Disable("/wait", "") },
		"policy": func(table *wasmtools.RouteTable) error {
			route, _ := table.Current().Lookup("/wait")
			return table.Configure([]*wasmtools.Tool{route.Tool}, nil, wasmtools.Configuration{Policy: wasmtools.Policy{Allowlist: true}})
		},
		"removed":   func(table *wasmtools.RouteTable) error { return table.Replace(nil, nil) },
		"exchanged": func(table *wasmtools.RouteTable) error { return table.Replace([]*wasmtools.Tool{echo("wait")}, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			entered, free := make(chan struct{}), make(chan struct{})
			table := tableOf(t, tool("wait", func(ctx context.Context, _ *wasmtools.Call) ([]byte, error) {
				close(entered)
				<-free
				return []byte(`"waited"`), ctx.Err()
			}))
			app := appOf(t, table, openapi.Options{})
			answer := make(chan *http.Response, 1)
			go func() { answer <- serve(app, post("/wait", `{}`)) }()
			<-entered
			if err := change(table); err != nil {
				t.Fatal(err)
			}
			close(free)
			a := <-answer
			if text := bodyOf(t, a); a.StatusCode != http.StatusOK || text != `"waited"` {
				t.Errorf("got %d %s", a.StatusCode, text)
			}
		})
	}
}
