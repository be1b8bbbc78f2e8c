package openapi_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/openapi"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/schema"
)

// picture returns a tool whose result has a media type.
func picture(mediaType, result string) *wasmtools.Tool {
	t := tool("draw", func(context.Context, *wasmtools.Call) ([]byte, error) { return []byte(result), nil })
	said, err := json.Marshal(mediaType)
	if err != nil {
		panic(err)
	}
	compiled, err := schema.Compile(json.RawMessage(`{"type":"string","contentEncoding":"base64","contentMediaType":` + string(said) + `}`))
	if err != nil {
		panic(err)
	}
	t.Result = compiled
	return t
}

// The file is sent if Accept prefers it to JSON, and otherwise JSON.
func TestMediaAccept(t *testing.T) {
	t.Parallel()
	app := appOf(t, tableOf(t, picture("image/png", `"iVBORw0KGgo="`)), openapi.Options{})
	for accept, raw := range map[string]bool{
		"":                                  false,
		"*/*":                               false,
		"application/json":                  false,
		"image/png":                         true,
		"image/*":                           true,
		"IMAGE/PNG":                         true,
		" image/png ; q=0.5 ":               true,
		"image/*;q=0.001":                   true,
		"image/png;q=0":                     false,
		"image/png;q=0.000, */*":            false,
		"image/png;q=0, image/*":            false,
		"image/*, image/png;q=0":            false,
		"image/jpeg":                        false,
		"image":                             false,
		"image/":                            false,
		"imagex*":                           false,
		"image/pngx":                        false,
		"text/html":                         false,
		"image/png, */*":                    true,
		"*/*, image/png":                    true,
		"image/*,*/*":                       true,
		"image/png, application/json":       false,
		"application/json, image/png":       false,
		"image/png, application/*":          true,
		"image/*, application/json":         false,
		"image/*, application/*":            false,
		"image/png;q=0.9, */*":              false,
		"image/png, application/json;q=.9":  true, // an unreadable weight is ignored
		"image/png, application/json;q=0.9": true,
		"image/png;q=0.5, application/json;q=0.4":   true,
		"image/png;q=0.5, application/json;q=0.501": false,
		"image/png;q=2":                           false,
		"image/png;q=1.001":                       false,
		"image/png;q=-1":                          false,
		"image/png;q=":                            false,
		"image/png;q=0.1234":                      false,
		"image/png;Q=1.000":                       true,
		"image/png;q=1.":                          true,
		`image/png;a="x,;q=0"`:                    true,
		`text/plain;a="image/png, image/png`:      false,
		`text/plain;a="\", image/png", image/png`: true,
		", ,,image/png,,":                         true,
		"image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8":                        true,  // <img>
		"text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,*/*;q=0.8":   false, // a page
		"application/json, text/plain, */*":                                                       false, // axios
		strings.Repeat("a/b,", 10000) + "image/png":                                               true,
		strings.Repeat("image/png;q=0.1,", 1000) + "application/json;q=0.2":                       false,
		"application/json;q=0.5, application/json;q=0.1, image/png;q=0.3, application/json;q=0.2": false,
	} {
		r := serve(app, post("/draw", "{}", "Accept", accept))
		kind, want, body := "application/json", `"iVBORw0KGgo="`, bodyOf(t, r)
		if raw {
			kind, want = "image/png", "\x89PNG\r\n\x1a\n"
		}
		if h := r.Header; r.StatusCode != 200 || body != want || h.Get("Content-Type") != kind || h.Get("Content-Length") != fmt.Sprint(len(want)) ||
			h.Get("Vary") != "Accept" || h.Get("Cache-Control") != "no-store" || h.Get("X-Content-Type-Options") != "nosniff" ||
			strings.Contains(h.Get("Content-Security-Policy"), "sandbox") != raw {
			t.Errorf("Accept: %.100s: got %d, %q, %v; want %q", accept, r.StatusCode, body, h, want)
		}
	}
	r := post("/draw", "{}")
	r.Header["Accept"] = []string{"text/html", "application/json;q=0.1", "image/png;q=0.2"}
	if got := serve(app, r); got.Header.Get("Content-Type") != "image/png" {
		t.Errorf("three lines of Accept: got %v", got.Header)
	}
}

// A result that is not a file in base64 is sent as it is, since results are not checked against the schema.
func TestMediaResults(t *testing.T) {
	t.Parallel()
	random := make([]byte, 100_001)
	rnd := rand.NewChaCha8([32]byte{1})
	rnd.Read(random)
	long := base64.StdEncoding.EncodeToString(random)
	for result, want := range map[string]string{
		`""`:                           "",
		`"AA=="`:                       "\x00",
		" \r\n\t\"AAE=\"\n":            "\x00\x01",
		`"\/\/\/\/"`:                   "\xff\xff\xff",
		`"\u0041A=="`:                  "\x00",
		`"` + long + `"`:               string(random),
		`"` + long[:12<<10] + `"`:      string(random[:9<<10]),
		`"` + long[:8<<10] + `"`:       string(random[:6<<10]),
		`"` + long[:8<<10-4] + `"`:     string(random[:6<<10-3]),
		`null`:                         "-",
		`{"error":"none"}`:             "-",
		`"`:                            "-",
		`"AAE"`:                        "-",
		`"%"`:                          "-",
		`"_-8="`:                       "-",
		`"AA==AA=="`:                   "-",
		`"data:image/png;base64,AA=="`: "-",
		`"` + strings.Repeat("AAAA", 2047) + "AA==" + `AAAA"`: "-", // padding at the end of a part
		`"` + long + `%"`: "-",
		`["AA=="]`:        "-",
		`"AA==","AA=="`:   "-",
	} {
		given := picture("image/png", result)
		if !json.Valid([]byte(result)) {
			// Only a Runner can return this: the results of all other tools are checked to be JSON.
			given.Caller = runner(result)
		}
		r := serve(appOf(t, tableOf(t, given), openapi.Options{}), post("/draw", "{}", "Accept", "image/*"))
		kind, body := "image/png", bodyOf(t, r)
		if want == "-" {
			kind, want = "application/json", result
		}
		if r.StatusCode != 200 || body != want || r.Header.Get("Content-Type") != kind || r.Header.Get("Content-Length") != fmt.Sprint(len(want)) {
			t.Errorf("%.60s: got %d, %v, %.60q; want %s, %.60q", result, r.StatusCode, r.Header, body, kind, want)
		}
	}
}

// runner is a Runner with one result.
type runner string

func (runner) IsRunner() {}

func (r runner) Call(context.Context, *wasmtools.Call) ([]byte, error) { return []byte(r), nil }

// The door must not overwrite a result: a tool may return the same bytes to every call.
func TestMediaLeavesTheResult(t *testing.T) {
	t.Parallel()
	shared := []byte(`"AAECAwQFBgcICQ=="`)
	given := picture("image/png", "")
	given.Caller = wasmtools.CallerFunc(func(context.Context, *wasmtools.Call) ([]byte, error) { return shared, nil })
	app := appOf(t, tableOf(t, given), openapi.Options{})
	for range 2 {
		if got := bodyOf(t, serve(app, post("/draw", "{}", "Accept", "image/png"))); got != "\x00\x01\x02\x03\x04\x05\x06\x07\x08\x09" {
			t.Errorf("got %q", got)
		}
	}
	if !bytes.Equal(shared, []byte(`"AAECAwQFBgcICQ=="`)) {
		t.Errorf("the result is %q now", shared)
	}
}

// Errors are JSON, whatever the client accepts, and so are the results of tools without a media type.
func TestMediaElsewhere(t *testing.T) {
	t.Parallel()
	failing := picture("image/png", "")
	failing.Caller = wasmtools.CallerFunc(func(context.Context, *wasmtools.Call) ([]byte, error) {
		return nil, &wasmtools.Error{Code: wasmtools.CodeToolError, Message: "no ink"}
	})
	app := appOf(t, tableOf(t, failing, echo("echo")), openapi.Options{})
	if r := serve(app, post("/draw", "{}", "Accept", "image/png")); r.StatusCode != 400 || r.Header.Get("Content-Type") != "application/json" {
		t.Errorf("a failure: got %d, %v", r.StatusCode, r.Header)
	}
	if r := serve(app, post("/echo", "{}", "Accept", "image/png")); r.StatusCode != 200 || r.Header.Get("Content-Type") != "application/json" || r.Header.Get("Vary") != "" {
		t.Errorf("another tool: got %d, %v", r.StatusCode, r.Header)
	}
}

// The document has another form of a result only if a header can hold the media type, and the media type is not JSON.
func TestMediaDocument(t *testing.T) {
	t.Parallel()
	for given, want := range map[string]string{
		"image/png":                  "image/png",
		"Image/PNG":                  "image/png",
		"text/csv; charset=utf-8":    "text/csv; charset=utf-8",
		"application/json":           "",
		"application/JSON; a=b":      "",
		"png":                        "",
		"":                           "",
		"image/png\r\nSet-Cookie: a": "",
		"image/png; a=\"\r\n\"":      "",
	} {
		app := appOf(t, tableOf(t, picture(given, `"AA=="`)), openapi.Options{})
		document := bodyOf(t, serve(app, get("/openapi.json")))
		validate(t, document)
		var parsed struct {
			Paths map[string]struct {
				Post struct {
					Responses map[string]struct {
						Content map[string]struct{ Schema json.RawMessage }
					}
				}
			}
		}
		if err := json.Unmarshal([]byte(document), &parsed); err != nil {
			t.Fatal(err)
		}
		content := parsed.Paths["/draw"].Post.Responses["200"].Content
		declared, ok := content[want]
		if ok != (want != "") || ok && string(declared.Schema) != `{"type":"string","format":"binary"}` || len(content) > 2 || content["application/json"].Schema == nil {
			t.Errorf("%q: got %v, want %q beside JSON", given, content, want)
		}
		r := serve(app, post("/draw", "{}", "Accept", "image/*, text/*, application/json;q=0.1"))
		if got := r.Header.Get("Content-Type"); want != "" && got != want || want == "" && got != "application/json" || len(r.Header["Set-Cookie"]) > 0 {
			t.Errorf("%q: got %v, want %q", given, r.Header, want)
		}
	}
}

// FuzzAccept checks that, whatever Accept says, the answer has one of the two forms of the result.
func FuzzAccept(f *testing.F) {
	for _, seed := range []string{"", "image/png", "image/*;q=0.5, */*", `a/b;c="d\",e"`, "image/png;q=1.0.0;q", "=;,/*\"\\"} {
		f.Add(seed)
	}
	table, err := wasmtools.NewRouteTable(picture("image/png", `"AA=="`))
	if err != nil {
		f.Fatal(err)
	}
	app := openapi.NewApp(table, openapi.Options{})
	f.Cleanup(func() { app.Close() })
	f.Fuzz(func(t *testing.T, accept string) {
		r := post("/draw", "{}")
		r.Header["Accept"] = []string{accept}
		got := serve(app, r)
		body := bodyOf(t, got)
		raw := got.Header.Get("Content-Type") == "image/png" && body == "\x00"
		if plain := got.Header.Get("Content-Type") == "application/json" && body == `"AA=="`; got.StatusCode != 200 || raw == plain {
			t.Errorf("%q: got %d, %v, %q", accept, got.StatusCode, got.Header, body)
		}
		if raw && !strings.Contains(strings.ToLower(accept), "image/") {
			t.Errorf("%q: nobody asked for an image", accept)
		}
	})
}
