package web_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/web"
)

// A logged line of requests that were refused, or of one.
type refusedLine struct {
	Msg, Path, Level string
	Calls            int
	Last             string `json:"last_request_id"`
}

// refusedLines returns the lines that were logged, and forgets them.
func refusedLines(t *testing.T, log *lockedLog) (lines []refusedLine) {
	t.Helper()
	log.mu.Lock()
	defer log.mu.Unlock()
	for line := range bytes.Lines(log.text.Bytes()) {
		var l refusedLine
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, l)
	}
	log.text.Reset()
	return lines
}

// refusing returns a Mux whose calls are all refused: below /math because of a tool, elsewhere before one was found.
func refusing(log *lockedLog) *web.Mux {
	mux := web.NewMux(web.Options{Logger: slog.New(slog.NewJSONHandler(log, nil)), Ready: func() error { return errors.New("not yet") }})
	mux.Mount("/", doorFunc(func(x *web.Exchange) { x.Fail(&wasmtools.Error{Code: wasmtools.CodeNotReady}) }))
	mux.Mount("/math", doorFunc(func(x *web.Exchange) {
		x.SetTool(x.Request().URL.Path)
		x.Fail(&wasmtools.Error{Code: wasmtools.CodeOverloaded})
	}))
	return mux
}

// refuse sends a request that must be refused.
func refuse(t *testing.T, mux *web.Mux, path string) {
	t.Helper()
	r, w := httptest.NewRequest("POST", path, nil), httptest.NewRecorder()
	r.Header.Set("X-Request-Id", "mine")
	if mux.ServeHTTP(w, r); w.Code != http.StatusServiceUnavailable {
		t.Fatalf("%s: got %d, want 503", path, w.Code)
	}
}

// TestCallsBeforeReady has what nobody can answer yet counted, whatever its path, and not what probes ask.
func TestCallsBeforeReady(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lockedLog
		mux := refusing(&log)
		for n := range 100 {
			refuse(t, mux, fmt.Sprintf("/tool/%d", n))
			mux.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/readyz", nil))
		}
		if err := mux.Close(); err != nil {
			t.Fatal(err)
		}
		got := refusedLines(t, &log)
		want := []refusedLine{{Msg: "request", Path: "/tool/0", Level: "INFO"}, {Msg: "further calls refused", Level: "INFO", Calls: 99, Last: "mine"}}
		if !slices.Equal(got, want) {
			t.Errorf("got %+v, want %+v", got, want)
		}
	})
}

// TestRefusedCalls has the log say once a second how many calls of a tool were refused.
func TestRefusedCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lockedLog
		mux := refusing(&log)
		call := func(path string, times int) {
			for range times {
				refuse(t, mux, path)
			}
		}
		want := func(when string, want ...refusedLine) {
			t.Helper()
			got := refusedLines(t, &log)
			if len(got) != len(want) {
				t.Fatalf("%s: got %d lines, want %d: %+v", when, len(got), len(want), got)
			}
			for i := range want {
				if got[i] != want[i] {
					t.Errorf("%s: got %+v, want %+v", when, got[i], want[i])
				}
			}
		}
		request := func(path string) refusedLine { return refusedLine{Msg: "request", Path: path, Level: "WARN"} }
		further := func(path string, calls int) refusedLine {
			return refusedLine{"further calls refused", path, "WARN", calls, "mine"}
		}
		second := func() {
			time.Sleep(time.Second)
			synctest.Wait()
		}

		call("/math/one", 5000)
		want("at once", request("/math/one"))
		time.Sleep(500 * time.Millisecond)
		call("/math/two", 1)
		want("of another tool", request("/math/two"))
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		want("after a second", further("/math/one", 4999))
		call("/math/one", 3)
		want("in the next second")
		second()
		want("after it", further("/math/one", 3))
		second()
		want("after a second without")
		call("/math/one", 1)
		want("later", request("/math/one"))
		call("/math/one", 2)
		if err := mux.Close(); err != nil {
			t.Fatal(err)
		}
		want("at the end", further("/math/one", 2))
		call("/math/one", 2)
		want("after the end", request("/math/one"), request("/math/one"))
		second()
		want("much later")
	})
}

// TestUsesInLog has a request's line tell what its call used, and nothing of that for a call that used nothing.
func TestUsesInLog(t *testing.T) {
	t.Parallel()
	log := &lockedLog{}
	mux := web.NewMux(web.Options{Logger: slog.New(slog.NewJSONHandler(log, nil))})
	mux.Mount("/", doorFunc(func(x *web.Exchange) {
		if x.Request().URL.Path != "/none" {
			for range 3 {
				x.Call().Used(wasmtools.Use{Capability: "http", Count: 1, Sent: 10, Received: 4000, Took: 40 * time.Millisecond})
			}
			x.Call().Used(wasmtools.Use{Capability: "kv", Count: 1, Failed: 1, Sent: 5, Took: time.Millisecond})
		}
		x.Send(http.StatusOK, []byte("{}"))
	}))
	const uses = `"http":3,"http_bytes":12030,"http_time":120000000,"kv":1,"kv_bytes":5,"kv_time":1000000,"kv_failed":1}`
	for path, want := range map[string]bool{"/some": true, "/none": false} {
		log.mu.Lock()
		log.text.Reset()
		log.mu.Unlock()
		mux.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", path, nil))
		log.mu.Lock()
		if text := log.text.Bytes(); bytes.Contains(text, []byte(uses)) != want || bytes.Contains(text, []byte("http_")) != want {
			t.Errorf("%s: told: %t, want %t, in %s", path, !want, want, text)
		}
		log.mu.Unlock()
	}
}
