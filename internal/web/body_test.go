package web_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// ten is a Body of at most ten bytes.
type ten struct{ text string }

func (*ten) Limit() int64 { return 10 }
func (*ten) TooLarge() error {
	return &wasmtools.Error{Code: wasmtools.CodeInputTooLarge, Message: "ten bytes"}
}

func (b *ten) Read(r io.Reader, _ int64) error {
	text, err := io.ReadAll(io.LimitReader(r, 11))
	if b.text = string(text); len(b.text) > 10 {
		return b.TooLarge()
	}
	return err
}

// unread fails the test if it is read.
type unread struct{ t *testing.T }

func (u unread) Read([]byte) (int, error) {
	u.t.Error("the body is read")
	return 0, io.EOF
}

// TestReadBody reads all kinds of bodies, and checks HasBody with the same ones.
func TestReadBody(t *testing.T) {
	t.Parallel()
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for _, test := range []struct {
		name   string
		body   io.Reader
		length int64
		change func(*http.Request)
		want   string // the body, or the code of the error
		has    string // the result of HasBody, "true" or "false", or the code of the error
	}{
		{"whole", strings.NewReader("0123456789"), 10, nil, "0123456789", "true"},
		{"of unknown length", strings.NewReader("0123456789"), -1, nil, "0123456789", "true"},
		{"empty", unread{t}, 0, nil, "", "false"},
		{"none", nil, 0, nil, "", "false"},
		{"empty, of unknown length", strings.NewReader(""), -1, nil, "", "false"},
		{"announced too large", unread{t}, 11, nil, "input_too_large", "true"},
		{"too large", strings.NewReader("0123456789a"), -1, nil, "input_too_large", "true"},
		{"larger than an outer handler allows", http.MaxBytesReader(nil, io.NopCloser(strings.NewReader("0123456789")), 0), -1, nil, "input_too_large", "input_too_large"},
		{"cut", iotest.ErrReader(io.ErrUnexpectedEOF), -1, nil, "invalid_arguments", "invalid_arguments"},
		{"late", iotest.ErrReader(os.ErrDeadlineExceeded), -1, nil, "request_timeout", "request_timeout"},
		{"late, which cancels the request", iotest.ErrReader(os.ErrDeadlineExceeded), -1, func(r *http.Request) { *r = *r.WithContext(gone) }, "request_timeout", "request_timeout"},
		{"of a client that is gone", iotest.ErrReader(errors.New("reset")), -1, func(r *http.Request) { *r = *r.WithContext(gone) }, "cancelled", "cancelled"},
		{"refused by its reader", iotest.ErrReader(&wasmtools.Error{Code: wasmtools.CodeOverloaded}), -1, nil, "overloaded", "overloaded"},
		{"of HTTP/1.0 without a length", unread{t}, 0, func(r *http.Request) { r.ProtoMinor = 0; r.Header.Del("Content-Length") }, "invalid_arguments", "false"},
		{"of HTTP/1.0, empty", unread{t}, 0, func(r *http.Request) { r.ProtoMinor = 0; r.Header.Set("Content-Length", "0") }, "", "false"},
	} {
		request := func() *http.Request {
			r := httptest.NewRequest("POST", "/", nil)
			r.Body, r.ContentLength = nil, test.length
			if test.body != nil {
				r.Body = io.NopCloser(test.body)
			}
			if test.change != nil {
				test.change(r)
			}
			return r
		}
		told := func(got string, err error) string {
			if failed, ok := errors.AsType[*wasmtools.Error](err); ok {
				return string(failed.Code)
			} else if err != nil {
				return err.Error()
			}
			return got
		}
		mux := web.NewMux(web.Options{})
		mux.Mount("/read.api", doorFunc(func(x *web.Exchange) {
			var b ten
			err := x.ReadBody(&b)
			if got := told(b.text, err); got != test.want {
				t.Errorf("%s: got %q, want %q", test.name, got, test.want)
			}
		}))
		mux.Mount("/has.api", doorFunc(func(x *web.Exchange) {
			has, err := x.HasBody()
			got := "false"
			if has {
				got = "true"
			}
			if got = told(got, err); got != test.has {
				t.Errorf("%s: HasBody returns %s, want %s", test.name, got, test.has)
			}
		}))
		for _, path := range []string{"/has.api", "/read.api"} {
			if s, ok := test.body.(io.Seeker); ok {
				_, _ = s.Seek(0, io.SeekStart)
			}
			r := request()
			r.URL.Path = path
			mux.ServeHTTP(httptest.NewRecorder(), r)
		}
	}
}
