package web_test

import (
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/toolsrv/toolsrv/internal/web"
)

// A shelf is a door with one document, which counts how often that is written.
type shelf struct {
	content string
	written atomic.Int64
	list    *web.Document
}

func (s *shelf) Size() int { return len(s.content) }

func (s *shelf) WriteTo(w io.Writer) (int64, error) {
	s.written.Add(1)
	n, err := io.WriteString(w, s.content)
	return int64(n), err
}

func (s *shelf) Serve(x *web.Exchange) { x.SendDocument(s.list) }

func shelved(content string, keep func(bytes int) bool) (*shelf, *web.Mux) {
	s := &shelf{content: content}
	s.list = web.NewDocumentOf(s, tag, keep)
	mux := web.NewMux(web.Options{})
	mux.Mount("/", s)
	return s, mux
}

const packedTag = `"two-gzip"`

func ask(mux *web.Mux, header ...string) *httptest.ResponseRecorder {
	r, got := httptest.NewRequest(http.MethodGet, "/", nil), httptest.NewRecorder()
	for i := 0; i < len(header); i += 2 {
		r.Header.Add(header[i], header[i+1])
	}
	mux.ServeHTTP(got, r)
	return got
}

func TestAcceptEncoding(t *testing.T) {
	t.Parallel()
	content := `["` + strings.Repeat("a car and a ball, ", 1000) + `"]`
	_, mux := shelved(content, nil)
	for _, test := range []struct {
		name   string
		fields []string
		want   bool // gzip
	}{
		{"none", nil, false},
		{"empty", []string{""}, false},
		{"gzip", []string{"gzip"}, true},
		{"another case", []string{"GZip"}, true},
		{"the old name", []string{"x-gzip"}, true},
		{"a browser's", []string{"gzip, deflate, br, zstd"}, true},
		{"two fields", []string{"br", "deflate, gzip"}, true},
		{"others only", []string{"br, deflate"}, false},
		{"all", []string{"*"}, true},
		{"all but gzip", []string{"*, gzip;q=0"}, false},
		{"none but gzip", []string{"gzip, *;q=0"}, true},
		{"refused", []string{"gzip;q=0"}, false},
		{"refused with digits", []string{"gzip; q=0.000"}, false},
		{"least", []string{"gzip;q=0.001"}, true},
		{"lower weight than uncompressed", []string{"gzip;q=0.5, identity"}, false},
		{"higher weight than uncompressed", []string{"gzip, identity;q=0.5"}, true},
		{"as much", []string{"identity;q=0.5, gzip;Q=0.5"}, true},
		{"blanks", []string{" br ,\tgzip ; q=1.0 "}, true},
		{"too much", []string{"gzip;q=1.001"}, false},
		{"too exact", []string{"gzip;q=0.0001"}, false},
		{"negative", []string{"gzip;q=-1"}, false},
		{"no number", []string{"gzip;q=a"}, false},
		{"another parameter", []string{"gzip;level=9"}, false},
		{"no comma", []string{"br gzip"}, false},
	} {
		var header []string
		for _, field := range test.fields {
			header = append(header, "Accept-Encoding", field)
		}
		got := ask(mux, header...)
		h := got.Result().Header
		if isPacked := h.Get("Content-Encoding") == "gzip"; got.Code != 200 || isPacked != test.want {
			t.Errorf("%s: got %d, gzip: %t, want 200 and %t", test.name, got.Code, isPacked, test.want)
			continue
		}
		wantTag, body := tag, io.Reader(got.Body)
		if test.want {
			wantTag = packedTag
			if body = unpack(t, body); got.Body.Len() > len(content)/10 {
				t.Errorf("%s: %d bytes are sent of %d", test.name, got.Body.Len(), len(content))
			}
		}
		text, err := io.ReadAll(body)
		if err != nil || string(text) != content {
			t.Errorf("%s: got %d bytes, %v, want the content", test.name, len(text), err)
		}
		if h.Get("ETag") != wantTag || h.Get("Vary") != "Accept-Encoding" || h.Get("Content-Type") != "application/json" {
			t.Errorf("%s: got the header %v, want the tag %s", test.name, h, wantTag)
		}
	}
}

func unpack(t *testing.T, r io.Reader) io.Reader {
	t.Helper()
	z, err := gzip.NewReader(r)
	if err != nil {
		t.Fatal(err)
	}
	return z
}

func TestIfNoneMatchPacked(t *testing.T) {
	t.Parallel()
	_, mux := shelved(`["`+strings.Repeat("a", 10_000)+`"]`, nil)
	for _, test := range []struct {
		name, accept, known string
		want                int
		tag                 string
	}{
		{"packed, known packed", "gzip", packedTag, 304, packedTag},
		{"packed, known weakly", "gzip", "W/" + packedTag, 304, packedTag},
		{"packed, known plain", "gzip", tag, 304, tag},
		{"packed, both known", "gzip", packedTag + ", " + tag, 304, tag},
		{"packed, any", "gzip", "*", 304, tag},
		{"packed, another known", "gzip", `"one-gzip"`, 200, packedTag},
		{"plain, known plain", "identity", tag, 304, tag},
		{"plain, known packed", "identity", packedTag, 200, tag},
	} {
		got := ask(mux, "Accept-Encoding", test.accept, "If-None-Match", test.known)
		if h := got.Result().Header; got.Code != test.want || h.Get("ETag") != test.tag || h.Get("Vary") != "Accept-Encoding" || test.want == 304 && h.Get("Content-Encoding") != "" {
			t.Errorf("%s: got %d %v, want %d with %s", test.name, got.Code, h, test.want, test.tag)
		}
	}
}

func TestSmallDocumentIsNotPacked(t *testing.T) {
	t.Parallel()
	_, mux := shelved(`["a"]`, nil)
	if h := ask(mux, "Accept-Encoding", "gzip").Result().Header; h.Get("Content-Encoding") != "" || h.Get("Vary") != "" {
		t.Errorf("got the header %v, want no Content-Encoding and no Vary", h)
	}
}

// TestPackedOnce sends many requests at once. A compressed form that may not be kept is also made only once, and never tried again.
func TestPackedOnce(t *testing.T) {
	t.Parallel()
	for _, keeps := range []bool{true, false} {
		asked := 0
		s, mux := shelved(strings.Repeat(" ", 100_000), func(bytes int) bool {
			asked += bytes
			return keeps
		})
		if ask(mux); s.written.Swap(0) != 1 {
			t.Error("the compressed form is made for a client that does not accept it")
		}
		var all sync.WaitGroup
		for range 8 {
			all.Go(func() {
				if h := ask(mux, "Accept-Encoding", "gzip").Result().Header; (h.Get("Content-Encoding") == "gzip") != keeps {
					t.Errorf("keeps %t: got the header %v", keeps, h)
				}
			})
		}
		all.Wait()
		want := int64(1)
		if !keeps {
			want += 8 // without compression
		}
		if n := s.written.Load(); n != want || asked < 50 || asked > 1000 {
			t.Errorf("keeps %t: the content was written %d times and %d bytes were asked for, want %d times and some hundred bytes", keeps, n, asked, want)
		}
	}
}

func FuzzAcceptEncoding(f *testing.F) {
	_, mux := shelved(strings.Repeat(" ", 4000), nil)
	for _, seed := range []string{"", "gzip", "gzip;q=0", "*;q=0.5, identity;q=0.6", "gzip;q=0.5;q=1", ";;;", "gzip;", "gzip;q=", "gzip;q=1.", ",,gzip", "gzip;q=0.5, gzip"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, field string) {
		got := ask(mux, "Accept-Encoding", field)
		if got.Code != 200 {
			t.Errorf("%q: got %d, want 200", field, got.Code)
		}
		if packed := got.Result().Header.Get("Content-Encoding") == "gzip"; packed && !strings.Contains(strings.ToLower(field), "gzip") && !strings.Contains(field, "*") {
			t.Errorf("%q: got gzip, which the header does not name", field)
		}
	})
}

// TestServePacked answers through a handler, with and without compression.
func TestServePacked(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("a line of many\n", 1000)
	for _, test := range []struct {
		name    string
		accept  []string
		handler http.HandlerFunc
		status  int
		packed  bool
		want    string
	}{
		{"packed", []string{"gzip"}, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }, http.StatusOK, true, text},
		{"in parts", []string{"br, gzip;q=0.5"}, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusOK)
			_, _ = io.WriteString(w, text[:7])
			_, _ = io.WriteString(w, text[7:])
		}, http.StatusOK, true, text},
		{"without Accept-Encoding", nil, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }, http.StatusOK, false, text},
		{"gzip refused", []string{"gzip;q=0"}, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, text) }, http.StatusOK, false, text},
		{"an error", []string{"gzip"}, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "too many", http.StatusServiceUnavailable) }, http.StatusServiceUnavailable, false, "too many\n"},
		{"nothing", []string{"gzip"}, func(http.ResponseWriter, *http.Request) {}, http.StatusOK, false, ""},
	} {
		mux := web.NewMux(web.Options{})
		mux.Mount("/", doorFunc(func(x *web.Exchange) { web.ServePacked(x, test.handler) }))
		var fields []string
		for _, a := range test.accept {
			fields = append(fields, "Accept-Encoding", a)
		}
		got := ask(mux, fields...)
		packed := got.Header().Get("Content-Encoding") == "gzip"
		if got.Code != test.status || packed != test.packed || got.Header().Get("Vary") == "" {
			t.Errorf("%s: got %d, %v", test.name, got.Code, got.Header())
			continue
		}
		var body io.Reader = got.Body
		if packed {
			if size := got.Body.Len(); size > len(text)/10 {
				t.Errorf("%s: %d bytes are sent", test.name, size)
			}
			z, err := gzip.NewReader(got.Body)
			if err != nil {
				t.Fatalf("%s: %v", test.name, err)
			}
			body = z
		}
		if said, err := io.ReadAll(body); err != nil || string(said) != test.want {
			t.Errorf("%s: got %.50q, %v", test.name, said, err)
		}
	}
}
