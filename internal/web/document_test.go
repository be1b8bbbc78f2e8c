package web_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/web"
)

// tag is the tag of a toy's document.
const tag = `"two"`

func listed(dependencies ...web.Dependency) *web.Mux {
	mux := web.NewMux(web.Options{Dependencies: dependencies})
	mux.Mount("/toy.api", newToy())
	return mux
}

func TestIfNoneMatch(t *testing.T) {
	t.Parallel()
	mux := listed(bearer(t))
	tests := []struct {
		name   string
		fields []string
		want   int
	}{
		{"none", nil, 200},
		{"the tag", []string{tag}, 304},
		{"weak", []string{"W/" + tag}, 304},
		{"weak in lower case", []string{"w/" + tag}, 200},
		{"star", []string{"*"}, 304},
		{"star with blanks", []string{" \t*  "}, 304},
		{"star in a list", []string{`"a", *`}, 200},
		{"list", []string{`"a", "b",` + tag}, 304},
		{"list with empty elements", []string{`,, ,	"a",,` + tag + ` ,`}, 304},
		{"first of a list", []string{tag + `, "a"`}, 304},
		{"second field", []string{`"a"`, tag}, 304},
		{"junk in the first field", []string{`junk`, tag}, 304},
		{"a comma in a tag", []string{`"a,b", ` + tag}, 304},
		{"empty tag", []string{`"", ` + tag}, 304},
		{"bytes over 127", []string{"\"\xff\", " + tag}, 304},
		{"another", []string{`"a"`}, 200},
		{"without quotes", []string{strings.Trim(tag, `"`)}, 200},
		{"half a quote", []string{strings.TrimSuffix(tag, `"`)}, 200},
		{"quoted within", []string{`"\"` + tag}, 200},
		{"no comma between", []string{`"a" ` + tag}, 200},
		{"junk after", []string{tag + "x"}, 200},
		{"junk before", []string{`x, ` + tag}, 200},
		{"blank in a tag", []string{`"a b", ` + tag}, 200},
		{"weak twice", []string{"W/W/" + tag}, 200},
		{"line folded", []string{"\"a\",\r\n " + tag}, 200},
		{"empty", []string{""}, 200},
		{"commas", []string{strings.Repeat(",", 1<<20)}, 200},
		{"quotes", []string{strings.Repeat(`"`, 1<<20)}, 200},
		{"tags", []string{strings.Repeat(`"a",`, 1<<18) + tag}, 304},
	}
	for _, tt := range tests {
		for _, method := range []string{http.MethodGet, http.MethodHead} {
			r, got := httptest.NewRequest(method, "/toy.api", nil), httptest.NewRecorder()
			r.Header["If-None-Match"] = tt.fields
			mux.ServeHTTP(got, r)
			h := got.Header()
			if got.Code != tt.want || h.Get("ETag") != tag || h.Get("Cache-Control") != "no-cache" || h.Get("Vary") != "Authorization" {
				t.Errorf("%s %s: got %d %v, want %d", method, tt.name, got.Code, h, tt.want)
			}
			if wantBody := tt.want == 200 && method == http.MethodGet; (got.Body.Len() > 0) != wantBody {
				t.Errorf("%s %s: got a body of %d bytes", method, tt.name, got.Body.Len())
			}
		}
	}
}

// Whatever the field is, the answer is 200 or 304, and 304 only if the field contains the tag or a star.
func FuzzIfNoneMatch(f *testing.F) {
	mux := listed()
	for _, seed := range []string{"", "*", `"a"`, `W/"a"`, tag, "W/" + tag, `"a", ` + tag, ",,", `"`, `W/`, tag + tag, "\"a\",\r\n " + tag} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, field string) {
		r, w := httptest.NewRequest("GET", "/toy.api", nil), httptest.NewRecorder()
		r.Header["If-None-Match"] = []string{field}
		mux.ServeHTTP(w, r)
		switch got := w.Code; got {
		case 200:
			if field == tag {
				t.Errorf("%q: got 200", field)
			}
		case 304:
			if !strings.Contains(field, tag) && strings.Trim(field, " \t") != "*" {
				t.Errorf("%q: got 304", field)
			}
		default:
			t.Errorf("%q: got %d", field, got)
		}
	})
}
