package openapi_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/toolsrv/toolsrv/internal/openapi"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/auth"
)

func TestSwitchesAreVisibleAtOnce(t *testing.T) {
	t.Parallel()
	table := tableOf(t, add(), echo("echo"))
	app := appOf(t, table, openapi.Options{})
	status := func(path string) int { return serve(app, post(path, `{"a":1,"b":2}`)).StatusCode }
	step := func(what string, err error, wantAdd, wantEcho, wantNew int) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		got := [3]int{status("/math/add"), status("/echo"), status("/new")}
		if want := [3]int{wantAdd, wantEcho, wantNew}; got != want {
			t.Errorf("%s: got %v, want %v", what, got, want)
		}
		var listed []struct{ Path string }
		if err := json.Unmarshal([]byte(bodyOf(t, serve(app, get("/tools")))), &listed); err != nil {
			t.Fatal(err)
		}
		for _, l := range listed {
			if got := status(l.Path); got != 200 {
				t.Errorf("%s: %s is listed and answers %d", what, l.Path, got)
			}
		}
		enabled := 0
		for _, s := range got {
			if s == 200 {
				enabled++
			}
		}
		if len(listed) != enabled {
			t.Errorf("%s: %d tools are listed, %d answer", what, len(listed), enabled)
		}
	}
	step("at first", nil, 200, 200, 404)
	step("disable", table.Disable("/math/add", ""), 503, 200, 404)
	step("disable again", table.Disable("/math/add", "other"), 503, 200, 404)
	step("replace", table.Replace([]*wasmtools.Tool{add(), echo("new")}, nil), 503, 404, 200)
	step("enable", table.Enable("math"), 200, 404, 200)
	step("allow nothing", table.Configure([]*wasmtools.Tool{add(), echo("new")}, nil, wasmtools.Configuration{Policy: wasmtools.Policy{Allowlist: true}}), 200, 404, 503)
	step("replace with none", table.Replace(nil, nil), 404, 404, 404)
	if err := app.Close(); err != nil {
		t.Fatal(err)
	}
	step("after Close", table.Replace([]*wasmtools.Tool{echo("new")}, nil), 404, 404, 404)
}

// storm runs the readers concurrently until the writers have finished their rounds.
func storm(writers []func(round int) error, readers []func() error, rounds int) error {
	var writing, reading sync.WaitGroup
	var stop atomic.Bool
	failures := make(chan error, len(writers)+len(readers))
	for _, w := range writers {
		writing.Go(func() {
			for i := range rounds {
				if err := w(i); err != nil {
					failures <- err
					return
				}
			}
		})
	}
	for _, r := range readers {
		reading.Go(func() {
			for first := true; first || !stop.Load(); first = false {
				if err := r(); err != nil {
					failures <- err
					return
				}
			}
		})
	}
	writing.Wait()
	stop.Store(true)
	reading.Wait()
	close(failures)
	return <-failures
}

// The whole table, switches and tokens change under load: no request may fail because of that, and a list may never show a mixture.
func TestSwapsUnderLoad(t *testing.T) {
	t.Parallel()
	// All tools change their version together, so a list with two versions would be a mixture.
	generation := func(version string) []*wasmtools.Tool {
		var tools []*wasmtools.Tool
		for i := range 20 {
			e := echo(fmt.Sprintf("space/tool-%02d", i))
			e.Version = version
			tools = append(tools, e)
		}
		return append(tools, echo("steady"), echo("switched"))
	}
	table := tableOf(t, generation("0")...)
	a, err := auth.NewBearerTokenAuth([]string{"kept"})
	if err != nil {
		t.Fatal(err)
	}
	app := appOf(t, table, openapi.Options{Dependencies: []openapi.Dependency{auth.Dependency(a)}})
	authorized := []string{"Authorization", "Bearer kept"}
	call := func(path string, want ...int) func() error {
		return func() error {
			w := httptest.NewRecorder()
			app.ServeHTTP(w, post(path, `{"x":1}`, authorized...))
			if !slices.Contains(want, w.Code) || (w.Code == 200 && w.Body.String() != `{"x":1}`) {
				return fmt.Errorf("POST %s: got %d %s", path, w.Code, w.Body)
			}
			return nil
		}
	}
	list := func() error {
		w := httptest.NewRecorder()
		app.ServeHTTP(w, get("/tools", authorized...))
		var tools []struct{ Namespace, Name, Version string }
		if err := json.Unmarshal(w.Body.Bytes(), &tools); err != nil || len(tools) < 21 {
			return fmt.Errorf("/tools: got %d tools, %v", len(tools), err)
		}
		for _, tool := range tools {
			if tool.Namespace == "space" && tool.Version != tools[0].Version {
				return fmt.Errorf("/tools: got versions %s and %s in one list", tools[0].Version, tool.Version)
			}
		}
		return nil
	}
	document := func() error {
		w := httptest.NewRecorder()
		app.ServeHTTP(w, get("/openapi.json", authorized...))
		if w.Code != 200 || !json.Valid(w.Body.Bytes()) {
			return fmt.Errorf("/openapi.json: got %d", w.Code)
		}
		again := httptest.NewRecorder()
		app.ServeHTTP(again, get("/openapi.json", append(authorized, "If-None-Match", w.Header().Get("ETag"))...))
		if again.Code != 304 && again.Header().Get("ETag") == w.Header().Get("ETag") {
			return fmt.Errorf("/openapi.json: got %d for its own tag", again.Code)
		}
		return nil
	}
	err = storm(
		[]func(int) error{
			func(i int) error { return table.Replace(generation(fmt.Sprint(i)), nil) },
			func(i int) error { return table.Disable("/switched", fmt.Sprint(i)) },
			func(int) error { return table.Enable("/switched") },
			func(i int) error {
				if err := a.AddToken(fmt.Sprint("token-", i)); err != nil {
					return err
				}
				a.RemoveToken(fmt.Sprint("token-", i))
				return nil
			},
		},
		[]func() error{call("/steady", 200), call("/space/tool-07", 200), call("/switched", 200, 503), list, document},
		50)
	if err != nil {
		t.Error(err)
	}
}

// Apps come and go while their table changes.
func TestSubscriptionsUnderLoad(t *testing.T) {
	t.Parallel()
	table := tableOf(t, echo("one"))
	err := storm(
		[]func(int) error{
			func(int) error { return table.Disable("/one", "") },
			func(int) error { return table.Enable("/one") },
			func(int) error {
				app := openapi.NewApp(table, openapi.Options{})
				if err := app.Close(); err != nil {
					return err
				}
				return app.Close()
			},
		},
		[]func() error{func() error {
			app := openapi.NewApp(table, openapi.Options{})
			defer app.Close()
			if got := serve(app, get("/tools")).StatusCode; got != 200 {
				return fmt.Errorf("got %d", got)
			}
			return nil
		}}, 50)
	if err != nil {
		t.Error(err)
	}
}
