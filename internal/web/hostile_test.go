package web_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/misfit"
)

// explosive is an error and a JSON value whose methods all panic.
type explosive struct{}

func (explosive) Error() string                { panic("no text") }
func (explosive) MarshalJSON() ([]byte, error) { panic("no JSON") }

// secretive is an error that panics when it is unwrapped.
type secretive struct{ error }

func (secretive) Unwrap() error { panic("no cause") }

// TestHostileDoors has doors that misbehave. The client learns that its answer is incomplete, the log says why, and the next request is served.
// Proves: Clients keep nobody out
// Proves: Nothing stops the server
func TestHostileDoors(t *testing.T) {
	t.Parallel()
	const (
		internal = `"code":"internal"`
		cut      = "(cut)"
	)
	for _, test := range []struct {
		name   string
		door   web.Door
		status int    // 0: the connection ends without an answer
		want   string // a part of the body, which ends in "cut" if the connection is cut
		logged string
	}{
		{"a panic", foreign(func(http.ResponseWriter, *http.Request) { panic("ouch") }), 500, internal, "panic: ouch"},
		{"a panic with an error that panics", foreign(func(http.ResponseWriter, *http.Request) { panic(explosive{}) }), 500, internal, "PANIC=Error method: no text"},
		{"a panic after half a response", foreign(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "half")
			_ = http.NewResponseController(w).Flush()
			panic("ouch")
		}), 200, "half" + cut, "panic: ouch"},
		{"a panic after half a stream", doorFunc(func(x *web.Exchange) {
			x.Stream()
			_, _ = io.WriteString(x, "half")
			x.Flush()
			panic("ouch")
		}), 200, "half" + cut, "panic: ouch"},
		{"an error after half a response", doorFunc(func(x *web.Exchange) {
			_, _ = io.WriteString(x, "half")
			x.Flush()
			x.Fail(errors.New("ouch"))
		}), 200, "half" + cut, "ouch"},
		{"a response that is given up", foreign(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "half")
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}), 200, "half" + cut, `"status":200`},
		{"a panic with the header of another response", foreign(func(w http.ResponseWriter, _ *http.Request) {
			for _, name := range []string{"Etag", "Last-Modified", "Content-Encoding", "Content-Type", "Content-Length"} {
				w.Header().Set(name, "7")
			}
			panic("ouch")
		}), 500, internal, "panic: ouch"},
		{"hijacking", foreign(func(w http.ResponseWriter, _ *http.Request) {
			_, _, err := http.NewResponseController(w).Hijack()
			_, _ = fmt.Fprint(w, errors.Is(err, http.ErrNotSupported))
		}), 200, "true", `"status":200`},
		{"hijacking around the exchange, and a panic", foreign(func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(interface{ Unwrap() http.ResponseWriter }).Unwrap().(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
			}
			_ = conn.Close()
			panic("ouch")
		}), 0, "", "panic: ouch"},
		{"no status", foreign(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(0) }), 500, internal, "invalid WriteHeader code 0"},
		{"two statuses", foreign(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(201); w.WriteHeader(404) }), 201, "", `"status":201`},
		{"a status before the status", foreign(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(103); panic("ouch") }), 500, internal, "panic: ouch"},
		{"nothing", foreign(func(http.ResponseWriter, *http.Request) {}), 200, "", `"status":200`},
		{"an error without JSON", doorFunc(func(x *web.Exchange) {
			x.Fail(&wasmtools.Error{Code: wasmtools.CodeInvalidArguments, Violations: []misfit.Violation{{Ctx: map[string]any{"f": func() {}}}}})
		}), 500, internal, "encode error body"},
		{"an error whose JSON panics", doorFunc(func(x *web.Exchange) {
			x.Fail(&wasmtools.Error{Code: wasmtools.CodeInvalidArguments, Violations: []misfit.Violation{{Ctx: map[string]any{"e": explosive{}}}}})
		}), 500, internal, "panic: no JSON"},
		{"an error whose text panics", doorFunc(func(x *web.Exchange) { x.Fail(explosive{}) }), 500, internal, "PANIC=Error method: no text"},
		{"an error whose cause panics", doorFunc(func(x *web.Exchange) { x.Fail(secretive{errors.New("e")}) }), 500, internal, "panic: no cause"},
		{"an error of 100 MB", doorFunc(func(x *web.Exchange) { x.Fail(errors.New(strings.Repeat("x", 100<<20))) }), 500, internal, "xxx"},
		{"a nil error", doorFunc(func(x *web.Exchange) { x.Fail(nil) }), 500, internal, internal},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var log lockedLog
			mux := web.NewMux(web.Options{Logger: slog.New(slog.NewJSONHandler(&log, nil))})
			mux.Mount("/", test.door)
			mux.Mount("/next.api", newToy())
			server := httptest.NewUnstartedServer(mux)
			server.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, 0)
			server.Start()
			defer server.Close()
			answer, err := server.Client().Get(server.URL)
			if (err != nil) != (test.status == 0) {
				t.Fatalf("got the error %v, want the status %d", err, test.status)
			}
			if err == nil {
				body, err := readAll(answer)
				if err != nil {
					body += cut
				}
				if answer.StatusCode != test.status || !strings.Contains(body, test.want) || strings.HasSuffix(body, cut) != strings.HasSuffix(test.want, cut) {
					t.Errorf("got %d %.200s (%v), want %d %s", answer.StatusCode, body, err, test.status, test.want)
				}
				if answer.StatusCode == 500 && (answer.Header.Get("Etag") != "" || answer.Header.Get("Content-Encoding") != "" || answer.Header.Get("Last-Modified") != "") {
					t.Errorf("the error has the header %v", answer.Header)
				}
			}
			waitFor(t, 1, log.lines)
			log.mu.Lock()
			text := log.text.String()
			log.mu.Unlock()
			if !strings.Contains(text, test.logged) || len(text) > 10<<10 || strings.Count(text, "\n") != 1 {
				t.Errorf("logged %.500s, want one line with %s", text, test.logged)
			}
			next, err := server.Client().Get(server.URL + "/next.api")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := readAll(next); next.StatusCode != http.StatusNotFound || err != nil {
				t.Errorf("the next request: got %d (%v)", next.StatusCode, err)
			}
		})
	}
}

// TestHostileRequestID makes clients send malformed ids.
// Proves: Nothing stops the server
func TestHostileRequestID(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	mux := web.NewMux(web.Options{Logger: slog.New(slog.NewJSONHandler(&log, nil))})
	mux.Mount("/toy.api", newToy())
	seen := map[string]bool{}
	for _, test := range []struct {
		name string
		ids  []string
		kept bool
	}{
		{"none", nil, false},
		{"well-formed", []string{"Gateway-7.a_b"}, true},
		{"as long as possible", []string{strings.Repeat("a", 64)}, true},
		{"one longer", []string{strings.Repeat("a", 65)}, false},
		{"1 MB", []string{strings.Repeat("a", 1<<20)}, false},
		{"empty", []string{""}, false},
		{"a line break", []string{"a\nb"}, false},
		{"a quote", []string{`a"b`}, false},
		{"not ASCII", []string{"é"}, false},
		{"two", []string{"one", "two"}, false},
	} {
		log.Reset()
		r := httptest.NewRequest("GET", "/toy.api/me", nil)
		r.Header["X-Request-Id"] = test.ids
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, r)
		got := w.Header().Get("X-Request-Id")
		if test.kept && got != test.ids[0] || !test.kept && (len(got) != 32 || seen[got]) {
			t.Errorf("%s: got the id %q", test.name, got)
		}
		if w.Body.String() != `"`+got+`"` || !strings.Contains(log.String(), `"request_id":"`+got+`"`) || log.Len() > 1<<10 {
			t.Errorf("%s: the door saw %.100s, the log %.500s, the client %q", test.name, w.Body, log.String(), got)
		}
		seen[got] = true
	}
	if got := web.RequestID(t.Context()); got != "" {
		t.Errorf("a context that no Mux has made has the id %q", got)
	}
}
