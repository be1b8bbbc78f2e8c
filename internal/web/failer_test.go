package web_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// A word is a Failer that begins each error with the word.
type word string

func (w word) Failure(e *wasmtools.Error) (int, []byte) {
	status, sentence := web.Describe(e)
	return status, []byte(`"` + string(w) + ": " + sentence + `"`)
}

// TestFailer lets a door write its own errors: the package still decides the status, the headers and what is hidden.
func TestFailer(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		err    error // nil: a panic
		status int
		body   string
	}{
		{&wasmtools.Error{Code: wasmtools.CodeOverloaded, Message: "Later"}, 503, `"wrong: Later"`},
		{&wasmtools.Error{Code: wasmtools.CodeNotFound}, 404, `"wrong: Not Found"`},
		{&wasmtools.Error{Code: wasmtools.CodeInternal, Message: "hunter2"}, 500, `"wrong: Internal error; give the operator the request id"`},
		{errors.New("hunter2"), 500, `"wrong: Internal error; give the operator the request id"`},
		{nil, 500, `"wrong: Internal error; give the operator the request id"`},
	} {
		mux := web.NewMux(web.Options{})
		mux.Mount("/", doorFunc(func(x *web.Exchange) {
			if x.SetFailer(word("wrong")); test.err == nil {
				panic("hunter2")
			}
			x.Fail(test.err)
		}))
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
		if retry := w.Header().Get("Retry-After") != ""; w.Code != test.status || w.Body.String() != test.body || retry != (test.status == 503) {
			t.Errorf("%v: got %d %s %v", test.err, w.Code, w.Body, w.Header())
		}
		_ = mux.Close()
	}
}
