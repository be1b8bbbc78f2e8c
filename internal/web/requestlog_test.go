package web_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// A refusedLine is a logged line about one or more refused requests.
type refusedLine struct {
	Msg, Level, Path, Code, Tool, Principal, Busiest string
	Requests, Most                                   int
	LastID, LastPath                                 string
}

// refusedLines returns the lines logged since the last call.
func refusedLines(t *testing.T, log *lockedLog) (lines []refusedLine) {
	t.Helper()
	log.mu.Lock()
	defer log.mu.Unlock()
	for line := range bytes.Lines(log.text.Bytes()) {
		var l struct {
			refusedLine
			Most     int    `json:"busiest_requests"`
			LastID   string `json:"last_request_id"`
			LastPath string `json:"last_path"`
		}
		if err := json.Unmarshal(line, &l); err != nil {
			t.Fatal(err)
		}
		l.refusedLine.Most, l.refusedLine.LastID, l.refusedLine.LastPath = l.Most, l.LastID, l.LastPath
		lines = append(lines, l.refusedLine)
	}
	log.text.Reset()
	return lines
}

// refusing returns a Mux that refuses all calls: below /math because of a tool, elsewhere before a tool is found.
func refusing(log *lockedLog) *web.Mux {
	mux := web.NewMux(web.Options{Logger: slog.New(slog.NewJSONHandler(log, nil)), Ready: func() error { return errors.New("not yet") }})
	mux.Mount("/", doorFunc(func(x *web.Exchange) {
		if !strings.HasPrefix(x.Request().URL.Path, "/math/") {
			x.Fail(&wasmtools.Error{Code: wasmtools.CodeNotReady})
			return
		}
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

// wantRefused compares the lines logged since the last call.
func wantRefused(t *testing.T, log *lockedLog, when string, want ...refusedLine) {
	t.Helper()
	got := refusedLines(t, log)
	if len(got) != len(want) {
		t.Fatalf("%s: got %d lines, want %d: %+v", when, len(got), len(want), got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%s: got %+v, want %+v", when, got[i], want[i])
		}
	}
}

// second lets a second pass.
func second() {
	time.Sleep(time.Second)
	synctest.Wait()
}

// TestCallsBeforeReady: requests that can't be answered yet are counted, whatever their path, but not probes.
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
		wantRefused(t, &log, "at the end", refusedLine{Msg: "request", Path: "/tool/0", Level: "INFO", Code: "not_ready"},
			refusedLine{Msg: "further requests refused", Level: "INFO", Code: "not_ready", Requests: 99, Busiest: "192.0.2.1", Most: 99, LastID: "mine", LastPath: "/tool/99"})
	})
}

// TestTokensInPaths: a token that a client puts into the path or the query is in no line of the log, even if it is truncated or mistyped.
func TestTokensInPaths(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const secret = "klmnopqrstuvwxyz234567abcdefghijklmnopqrstuvwxyz234567abcdefgh"
		var log lockedLog
		mux := refusing(&log)
		for _, path := range []string{
			"/tsv_abcdefghij_" + secret, "/tsv_abcdefghij_" + secret, "/x?token=tsv_abcdefghij_" + secret, "/%74sv%5Fabcdefghij_" + secret,
			"/TSV_abcdefghij_" + secret[:30], "/" + strings.Repeat("x", 230) + "/tsv_abcdefghij_" + secret, "/x/tsv_abcdefghij_" + secret + "/y",
		} {
			refuse(t, mux, path)
			second()
			second()
			refuse(t, mux, "/first")
			refuse(t, mux, path) // this one gets no line of its own
			second()
			second()
		}
		if err := mux.Close(); err != nil {
			t.Fatal(err)
		}
		log.mu.Lock()
		text := log.text.String()
		log.mu.Unlock()
		if strings.Contains(text, secret[:12]) || strings.Count(text, `"path":"/tsv_[hidden]"`) != 3 || strings.Count(text, `"last_path":"/tsv_[hidden]"`) != 3 {
			t.Errorf("got %s", text)
		}
	})
}

// TestRefusedCalls checks that the log says once a second how many calls of a tool were refused, and when the refusals end.
// Proves: Answers and logs show what is meant to be seen
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
			wantRefused(t, &log, when, want...)
		}
		request := func(path string) refusedLine {
			return refusedLine{Msg: "request", Path: path, Level: "WARN", Code: "overloaded"}
		}
		further := func(path string, calls int) refusedLine {
			return refusedLine{Msg: "further requests refused", Level: "WARN", Code: "overloaded", Tool: path, Requests: calls,
				Busiest: "192.0.2.1", Most: calls, LastID: "mine", LastPath: path}
		}
		over := func(path string, calls int) refusedLine {
			return refusedLine{Msg: "no requests are refused any more", Level: "INFO", Code: "overloaded", Tool: path, Requests: calls}
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
		want("after it", over("/math/two", 1), further("/math/one", 3))
		second()
		want("after a second without", over("/math/one", 5003))
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

// nonsense returns a Mux whose door answers each request with the code that its path names.
func nonsense(log *lockedLog, dependencies ...web.Dependency) *web.Mux {
	mux := web.NewMux(web.Options{Logger: slog.New(slog.NewJSONHandler(log, nil)), Dependencies: dependencies})
	mux.Mount("/", doorFunc(func(x *web.Exchange) {
		code := wasmtools.Code(strings.TrimPrefix(x.Request().URL.Path, "/"))
		x.SetTool("/tool")
		x.Fail(&wasmtools.Error{Code: code, Err: errors.New("the client's doing")})
	}))
	return mux
}

// TestNonsenseInLog sends each kind of refused request thousands of times in ten seconds: each kind gets one line a second.
func TestNonsenseInLog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lockedLog
		mux := nonsense(&log)
		kinds := []wasmtools.Code{wasmtools.CodeUnauthorized, wasmtools.CodeHostNotAllowed, wasmtools.CodeOriginNotAllowed, wasmtools.CodeNotFound,
			wasmtools.CodeMethodNotAllowed, wasmtools.CodeRequestTimeout, wasmtools.CodeInputTooLarge, wasmtools.CodeUnsupportedMediaType,
			wasmtools.CodeInvalidArguments, wasmtools.CodeToolDisabled, wasmtools.CodeToolNotGranted}
		const seconds = 10
		for range seconds {
			for n := range 300 {
				for _, code := range kinds {
					r := httptest.NewRequest("POST", "/"+string(code), nil)
					r.RemoteAddr = fmt.Sprintf("198.51.100.%d:4000", n%2*(n%250)) // half of them from 198.51.100.0
					mux.ServeHTTP(httptest.NewRecorder(), r)
				}
			}
			second()
		}
		if err := mux.Close(); err != nil {
			t.Fatal(err)
		}
		lines := map[string]int{}
		for _, l := range refusedLines(t, &log) {
			lines[l.Code]++
			if l.Level != "INFO" {
				t.Errorf("got %+v, want the level INFO", l)
			}
			if l.Msg == "further requests refused" && (l.Busiest != "198.51.100.0" || l.Most < 149 || l.LastPath != "/"+l.Code || l.Requests < 299) {
				t.Errorf("got %+v, want 198.51.100.0 as the busiest", l)
			}
		}
		for _, code := range kinds {
			if got := lines[string(code)]; got < seconds || got > seconds+1 {
				t.Errorf("%s: got %d lines in %d seconds, want one a second", code, got, seconds)
			}
		}
	})
}

// TestManySources floods from as many addresses as the owner of a /48 has: one of the networks stands out, and the memory for counts is bounded.
func TestManySources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lockedLog
		mux := nonsense(&log)
		send := func(from string) {
			r := httptest.NewRequest("POST", "/not_found", nil)
			r.RemoteAddr = from
			mux.ServeHTTP(httptest.NewRecorder(), r)
		}
		send("203.0.113.1:1")
		for n := range 5000 {
			send(fmt.Sprintf("[2001:db8:1:%x::%x]:5000", n, n))
			if n%10 == 0 {
				send(fmt.Sprintf("[2001:db8:2:2:%x::1]:5000", n)) // all within one /64
				send("[::ffff:203.0.113.7]:80")
				send("[::ffff:203.0.113.7]:80")
			}
		}
		second()
		got := refusedLines(t, &log)
		if len(got) != 2 || got[1].Requests != 6500 || got[1].Busiest != "203.0.113.7" || got[1].Most < 800 || got[1].Most > 1000 {
			t.Errorf("got %+v, want 203.0.113.7 as the busiest of 6500 requests, with at most 1000 of its own", got)
		}
		for n := range 10 {
			send(fmt.Sprintf("[2001:db8:2:2:%x::1]:5000", n))
			send("@") // over a Unix socket
		}
		mux.Close()
		if got := refusedLines(t, &log); len(got) != 1 || got[0].Busiest != "2001:db8:2:2::/64" || got[0].Most != 10 {
			t.Errorf("got %+v, want the network 2001:db8:2:2::/64 with 10", got)
		}
	})
}

// TestManyReasons has very many principals send nonsense at once: the first ones get a line each, and all others share one.
func TestManyReasons(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log lockedLog
		who := ""
		mux := nonsense(&log, named{&who})
		for n := range 1000 {
			who = fmt.Sprint("client-", n)
			for range 3 {
				mux.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "/not_found", nil))
			}
		}
		second()
		lines := refusedLines(t, &log)
		mux.Close()
		all, own := 0, 0
		for _, l := range lines {
			all += max(l.Requests, 1) // a line about a single request
			if l.Principal != "" && l.Requests > 0 {
				own++
			}
		}
		if all != 3000 || own != 64 || len(lines) > 130 {
			t.Errorf("got %d lines on %d requests, %d of them by a principal, want 130 at most on 3000, 64 of them", len(lines), all, own)
		}
	})
}

// named is a dependency whose principal's name can be set.
type named struct{ name *string }

func (named) Check(*http.Request) error { return nil }

func (n named) Principal(*http.Request, *wasmtools.Principal) (*wasmtools.Principal, error) {
	return wasmtools.NewPrincipal(*n.name, wasmtools.OriginToken, "*")
}

// TestUsesInLog checks that a request's line says what its call used, and omits that for a call that used nothing.
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

// TestDetail: the log has what a tool said about its failure, truncated if it is long, but not the messages of other errors.
// Proves: Answers and logs show what is meant to be seen
func TestDetail(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		failure *wasmtools.Error
		want    string
	}{
		"a tool's":         {&wasmtools.Error{Code: wasmtools.CodeToolError, Message: "2 are left."}, "2 are left."},
		"with data":        {&wasmtools.Error{Code: wasmtools.CodeToolError, Message: "No.", Data: json.RawMessage("{")}, "No."},
		"a long one":       {&wasmtools.Error{Code: wasmtools.CodeToolError, Message: strings.Repeat("long", 1000)}, strings.Repeat("long", 74) + "l..."},
		"without a word":   {&wasmtools.Error{Code: wasmtools.CodeToolError}, ""},
		"of the arguments": {&wasmtools.Error{Code: wasmtools.CodeInvalidArguments, Message: "private"}, ""},
		"of the server":    {&wasmtools.Error{Code: wasmtools.CodeInternal, Message: "private"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var log lockedLog
			mux := web.NewMux(web.Options{Logger: slog.New(slog.NewJSONHandler(&log, nil))})
			mux.Mount("/", doorFunc(func(x *web.Exchange) { x.Fail(c.failure) }))
			mux.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("POST", "/shop/order", nil))
			log.mu.Lock()
			defer log.mu.Unlock()
			var line struct{ Code, Detail string }
			if err := json.Unmarshal(log.text.Bytes(), &line); err != nil {
				t.Fatalf("%v: %s", err, log.text.Bytes())
			}
			if line.Code != string(c.failure.Code) || line.Detail != c.want {
				t.Errorf("the log has %q, %q; want %q, %q", line.Code, line.Detail, c.failure.Code, c.want)
			}
		})
	}
}
