package examples_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/openapi"
)

// serveRust serves the Rust examples in git or, if EXAMPLES_RUST names a folder, those in that folder.
func serveRust(t *testing.T) *wasmtools.RouteTable {
	t.Helper()
	pattern := "../../examples/*/*.wasm"
	if built := os.Getenv("EXAMPLES_RUST"); built != "" {
		pattern = filepath.Join(built, "*.wasm")
	}
	files, err := filepath.Glob(pattern)
	if err != nil {
		t.Fatal(err)
	}
	tools := t.TempDir()
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".wasm")
		if _, err := os.Stat(filepath.Join("../../examples", name, "Cargo.toml")); err != nil {
			continue // its calls need a body that is built by hand, in Go
		}
		if slices.Contains(granted, name) {
			continue
		}
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if len(content) > 500_000 {
			t.Errorf("%s has %d bytes: too large for git", file, len(content))
		}
		if err := os.WriteFile(filepath.Join(tools, name+".wasm"), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return serve(t, tools, nil, "/calc/evaluate", "/hash/digest", "/image/resize", "/json/query", "/markdown/render", "/qr/png", "/qr/svg")
}

func TestRustExamples(t *testing.T) {
	t.Parallel()
	table := serveRust(t)
	checkDocument(t, table)
	for _, route := range table.Tools() {
		if said := route.Tool.Annotations; route.Tool.Title == "" || said.ReadOnly == nil || said.OpenWorld == nil {
			t.Errorf("%s has no title, or lacks an annotation about its effects", route.Tool.Path())
		}
		if len(route.Tool.Examples) == 0 {
			t.Errorf("%s has no examples", route.Tool.Path())
		}
		for i, example := range route.Tool.Examples {
			got, err := call(t, table, route.Tool.Path(), string(example.Arguments))
			if err != nil || !same(got, string(example.Result)) {
				t.Errorf("%s, example %d: %s: got %s, %v, want %s", route.Tool.Path(), i+1, example.Arguments, got, err, example.Result)
			}
		}
	}
}

// TestRustHostile sends inputs that are as large and as hostile as the host lets through. Calls must end within the default limits, with a result or the
// tool's own error, or with the host's error if a JSONPath query takes too much memory or time, but never with a trap.
func TestRustHostile(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("calls for several seconds with large arguments: not with -short")
	}
	if testkit.Race(t) {
		t.Skip("takes a minute with -race, and nothing in it is concurrent")
	}
	table := serveRust(t)
	const most = 1<<20 - 200 // the size of an argument, so that the body stays below the default limit
	text := func(member, value string, others ...string) string {
		return fmt.Sprintf(`{%q: %s%s}`, member, quote(t, value), strings.Join(others, ""))
	}
	document := func(json, rest string) string { return `{"document": ` + json + rest + `}` }
	numbers := "[" + strings.Repeat("1,", most/2-10) + "1]"
	objects := "[" + strings.Repeat("{},", most/3-50) + "{}]"
	nested := strings.Repeat("[", 100) + strings.Repeat("]", 100)
	nests := "[" + strings.Repeat(nested+",", 1000) + "[]]"
	copies := "["
	for i := range 64 {
		copies += fmt.Sprintf(`{"op": "copy", "from": "", "path": "/%d"},`, i)
	}
	copies += `{"op": "remove", "path": ""}]`
	tests := []struct {
		name, path, arguments string
		want                  string // the error code of the tool or of the host; empty for a result; "*" for either
	}{
		{"calc: parentheses", "/calc/evaluate", text("expression", strings.Repeat("(", 10_000)), "too_deep"},
		{"calc: powers", "/calc/evaluate", text("expression", strings.Repeat("2^", 4999)+"2"), "too_deep"},
		{"calc: signs", "/calc/evaluate", text("expression", strings.Repeat("-", 9999)+"1"), ""},
		{"calc: choices", "/calc/evaluate", text("expression", "choose(9e15, 4.5e15)"), "overflow"},
		{"calc: longer than the schema allows", "/calc/evaluate", text("expression", strings.Repeat("1+", most/2)), "invalid_arguments"},
		{"calc: a long number", "/calc/evaluate", text("expression", strings.Repeat("9", 10_000)), "overflow"},
		{"calc: a small number", "/calc/evaluate", text("expression", "1e-999999999"), ""},

		{"hash: a megabyte", "/hash/digest", text("data", strings.Repeat("x", most)), ""},
		{"hash: a megabyte of hex", "/hash/digest", text("data", strings.Repeat("f", most-100), `, "encoding": "hex", "algorithm": "blake3"`), ""},
		{"hash: a megabyte that is not hex", "/hash/digest", text("data", strings.Repeat("f", most-100)+"ä", `, "encoding": "hex"`), "bad_encoding"},
		{"hash: a key of a megabyte", "/hash/hmac", text("key", strings.Repeat("k", most-100), `, "data": "", "algorithm": "sha3-512"`), ""},

		{"json: many numbers", "/json/query", document(numbers, `, "path": "$[*]"`), ""},
		{"json: many objects", "/json/query", document(objects, `, "path": "$..*"`), ""},
		{"json: many objects, compared", "/json/query", document(objects, `, "path": "$[?@.a == @.b]"`), ""},
		{"json: many pointers", "/json/query", document(numbers, `, "path": "$..*", "output": "pointers"`), "tool_memory"},
		{"json: many long pointers", "/json/query", document(nests, `, "path": "$..*", "output": "pointers"`), "tool_memory"},
		{"json: all values at every level", "/json/query", document(nests, `, "path": "$..*"`), "too_large"},
		{"json: all descendants of all descendants", "/json/query", document(nests, `, "path": "$..*..*"`), "tool_memory"},
		{"json: the same value many times", "/json/query", document("["+strings.Repeat("1,", 5000)+"1]", `, "path": "$[`+strings.Repeat("*,", 900)+`0]"`), "too_large"},
		{"json: the same index many times at each level", "/json/query", document("[[[[[[1]]]]]]", `, "path": "$`+strings.Repeat("[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]", 6)+`"`), "tool_memory"},
		{"json: all values counted for each value", "/json/query", document(objects, `, "path": "$[?count($..*) > 1]"`), "cancelled"},
		{"json: filters within filters", "/json/query", document(nests, `, "path": "$..[?@..[?$..[?@..[?$..[?@..[?$..[?@.a]]]]]]]"`), "cancelled"},
		{"json: a pattern for each value", "/json/query", document(`["`+strings.Repeat(`a","`, 200_000)+`a"]`, `, "path": "$[?match(@, '(a|b){1,500}c')]"`), ""},
		{"json: patterns of the document", "/json/query", document(`{"p": "(a{1,50}){1,20}", "t": ["`+strings.Repeat(`a","`, 50_000)+`a"]}`, `, "path": "$.t[?match(@, $.p)]"`), ""},
		{"json: many patterns of the document", "/json/query", document(`["`+strings.Repeat(`(a{1,50}){1,20}b","(a{1,50}){1,20}","`, 5_000)+`a"]`, `, "path": "$[?match('a', @)]"`), ""},
		{"json: nested too deeply to be read", "/json/query", document(strings.Repeat("[", 200)+strings.Repeat("]", 200), `, "path": "$"`), "invalid_arguments"},
		{"json: a query of brackets", "/json/query", document(`{}`, `, "path": "$`+strings.Repeat("[?@", 600)+`"`), "too_deep"},
		{"json: a query of signs", "/json/query", document(`[1]`, `, "path": "$[?`+strings.Repeat("!", 1900)+`@]"`), "syntax"},
		{"json: a slow pattern", "/json/query", document(`["`+strings.Repeat("a", 30_000)+`b"]`, `, "path": "$[?match(@, '(a*)*(a*)*(a|aa)*c')]"`), ""},
		{"json: a large pattern", "/json/query", document(`["a"]`, `, "path": "$[?match(@, '((((a{1,99}){1,99}){1,99}){1,99}){1,99}')]"`), "too_expensive"},
		{"json: copies of copies", "/json/patch", document(`{}`, `, "patch": `+copies), "too_large"},
		{"json: copies of a large value", "/json/patch", document(numbers[:200_000]+"1]", `, "patch": [`+strings.Repeat(`{"op": "copy", "from": "", "path": "/0"},`, 50)+`{"op": "remove", "path": "/0"}]`), "too_large"},
		{"json: a long pointer", "/json/patch", document(`{}`, `, "patch": [{"op": "remove", "path": "`+strings.Repeat("/", most-100)+`"}]`), "conflict"},
		{"json: many operations", "/json/patch", document(`[]`, `, "patch": [`+strings.Repeat(`{"op": "add", "path": "/0", "value": 1},`, 9999)+`{"op": "remove", "path": "/0"}]`), ""},
		{"json: a number too long", "/json/patch", document(`[1e999999999999999999999]`, `, "patch": [{"op": "test", "path": "/0", "value": -1e-999999999999999999999}]`), "invalid_arguments"},
		{"json: every item differs", "/json/diff", `{"from": [` + strings.Repeat("1,", 100_000) + `1], "to": [` + strings.Repeat("2,", 100_000) + `2]}`, "too_large"},

		{"markdown: quotes", "/markdown/render", text("text", strings.Repeat(">", 200_000)), "*"},
		{"markdown: lists", "/markdown/render", text("text", strings.Repeat("- ", 100_000)), "*"},
		{"markdown: lists in lines", "/markdown/render", text("text", strings.Repeat("*\n", 100_000)), ""},
		{"markdown: emphasis", "/markdown/render", text("text", strings.Repeat("*a **b ", 28_000)), ""},
		{"markdown: strikethrough", "/markdown/render", text("text", strings.Repeat("~a ~~b ", 28_000)), ""},
		{"markdown: brackets", "/markdown/render", text("text", strings.Repeat("[", 200_000)), ""},
		{"markdown: links", "/markdown/render", text("text", strings.Repeat("[a](<b", 33_000)), ""},
		{"markdown: links within links", "/markdown/render", text("text", strings.Repeat("[", 50_000)+"a"+strings.Repeat("](b)", 37_000)), ""},
		{"markdown: images within images", "/markdown/render", text("text", strings.Repeat("![", 40_000)+"a"+strings.Repeat("](b)", 29_000)), ""},
		{"markdown: a table", "/markdown/render", text("text", "|"+strings.Repeat("a|", 1000)+"\n|"+strings.Repeat("-|", 1000)+"\n"+strings.Repeat("|\n", 90_000)), "*"},
		{"markdown: footnotes", "/markdown/render", text("text", strings.Repeat("[^a]", 45_000)+"\n\n[^a]: x"), "*"},
		{"markdown: characters", "/markdown/render", text("text", strings.Repeat("€&<", 66_000)), ""},
		{"markdown: controls", "/markdown/render", text("text", strings.Repeat("\x01", 170_000)), ""},
		{"markdown: comments", "/markdown/render", text("text", strings.Repeat("a <!A ", 33_000)), ""},
		{"markdown: processing", "/markdown/render", text("text", strings.Repeat("a <? ", 40_000)), ""},

		{"qr: too much", "/qr/svg", text("text", strings.Repeat("a", 7089)), "too_long"},
		{"qr: the largest", "/qr/svg", text("text", strings.Repeat("7", 7089), `, "error_correction": "low"`), ""},
		{"qr: the largest picture", "/qr/png", text("text", strings.Repeat("7", 7089), `, "error_correction": "low", "scale": 20, "border": 20`), ""},
		{"qr: an attribute", "/qr/svg", text("text", "a", `, "dark": "#000000\" onload=\"alert(1)"`), "invalid_arguments"},

		{"image: the largest", "/image/resize", text("image", picture(t, 2048, 2048, false), `, "width": 1000`), ""},
		{"image: the largest, clear", "/image/resize", text("image", picture(t, 2048, 2048, true), `, "width": 1000`), ""},
		{"image: to the largest", "/image/resize", text("image", picture(t, 512, 512, true), `, "width": 2048`), ""},
		{"image: the same size", "/image/resize", text("image", picture(t, 2000, 2000, true), `, "width": 2000`), ""},
		{"image: a line", "/image/resize", text("image", picture(t, 4_000_000, 1, true), `, "width": 4096`), "too_large"},
		{"image: a column", "/image/resize", text("image", picture(t, 1, 4_000_000, true), `, "height": 4096`), "too_large"},
		{"image: a long line", "/image/resize", text("image", picture(t, 16_384, 256, true), `, "width": 4096`), ""},
		{"image: a long column", "/image/resize", text("image", picture(t, 256, 16_384, true), `, "height": 4096`), ""},
		{"image: too large", "/image/resize", text("image", picture(t, 2100, 2048, false), `, "width": 1`), "too_large"},
		{"image: noise", "/image/resize", text("image", noise(t, 480), `, "width": 1400`), "*"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			ctx := t.Context()
			if test.want == "cancelled" { // it would use up its time limit, which would take too long here
				short, cancel := context.WithTimeout(ctx, 2*time.Second)
				defer cancel()
				ctx = short
			}
			got, err := callWithin(ctx, t, table, test.path, test.arguments)
			switch {
			case err == nil && test.want != "" && test.want != "*":
				t.Errorf("got %.200s, want the error %s", got, test.want)
			case err == nil:
			case err.Code != wasmtools.CodeToolError && string(err.Code) != test.want:
				t.Errorf("the tool broke: %s: %.300s", err.Code, err.Message)
			case err.Code == wasmtools.CodeToolError && err.ToolCode != test.want && test.want != "*":
				t.Errorf("got the error %q: %.300s, want %q", err.ToolCode, err.Message, test.want)
			case len(err.Message) > 1000:
				t.Errorf("the message has %d bytes: %.300s", len(err.Message), err.Message)
			}
		})
	}
}

// quote returns a text as a JSON string.
func quote(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(text); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(b.String())
}

// picture returns a PNG in base64 that is much smaller than its pixels.
func picture(t *testing.T, width, height int, clear bool) string {
	t.Helper()
	var img image.Image = image.NewGray(image.Rect(0, 0, width, height))
	if clear {
		m := image.NewNRGBA(image.Rect(0, 0, width, height))
		for i := range width * height {
			m.Pix[4*i] = byte(i >> 12)
			m.Pix[4*i+3] = byte(i >> 14)
		}
		img = m
	}
	return encode(t, img)
}

// noise returns a PNG in base64 that can't be made smaller.
func noise(t *testing.T, side int) string {
	t.Helper()
	img := image.NewRGBA(image.Rect(0, 0, side, side))
	state := uint32(1)
	for i := range side * side {
		state = state*1664525 + 1013904223
		img.Set(i%side, i/side, color.RGBA{byte(state >> 8), byte(state >> 16), byte(state >> 24), 255})
	}
	return encode(t, img)
}

func encode(t *testing.T, img image.Image) string {
	t.Helper()
	var b bytes.Buffer
	if err := png.Encode(&b, img); err != nil {
		t.Fatal(err)
	}
	return base64.StdEncoding.EncodeToString(b.Bytes())
}

// TestRustReadmes compares curl's output in the READMEs with the service's answers.
func TestRustReadmes(t *testing.T) {
	t.Parallel()
	app := openapi.NewApp(serveRust(t), openapi.Options{Title: "Tools", Version: "1"})
	t.Cleanup(func() { app.Close() })
	files, err := filepath.Glob("../../examples/*/Cargo.toml")
	if err != nil {
		t.Fatal(err)
	}
	curl := regexp.MustCompile(`(?m)^\$ curl -s localhost:8000(\S+) -H 'Content-Type: application/json' -d '(.*)'\n(.*)$`)
	for _, file := range files {
		if slices.Contains(granted, filepath.Base(filepath.Dir(file))) {
			continue
		}
		readme := filepath.Join(filepath.Dir(file), "README.md")
		text, err := os.ReadFile(readme)
		if err != nil {
			t.Error(err)
			continue
		}
		calls := curl.FindAllStringSubmatch(string(text), -1)
		if len(calls) < 2 || len(calls) != strings.Count(string(text), "$ curl") {
			t.Errorf("%s: read %d calls of %d, want all of them, and at least two", readme, len(calls), strings.Count(string(text), "$ curl"))
		}
		for _, c := range calls {
			request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, c[1], strings.NewReader(c[2]))
			request.Header.Set("Content-Type", "application/json")
			answer := httptest.NewRecorder()
			app.ServeHTTP(answer, request)
			if got := strings.TrimSpace(answer.Body.String()); got != c[3] {
				t.Errorf("%s: %s with %s: got\n%s\nwant\n%s", readme, c[1], c[2], got, c[3])
			}
		}
	}
}

// A picture can also be requested as a file, and the document says so.
func TestRustPicture(t *testing.T) {
	t.Parallel()
	app := openapi.NewApp(serveRust(t), openapi.Options{})
	t.Cleanup(func() { app.Close() })
	request := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/qr/png", strings.NewReader(`{"text": "https://example.com", "scale": 2}`))
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept", "image/png")
	answer := httptest.NewRecorder()
	app.ServeHTTP(answer, request)
	drawn, err := png.Decode(answer.Body)
	if err != nil || answer.Header().Get("Content-Type") != "image/png" {
		t.Fatalf("got %d, %v, %v", answer.Code, answer.Header(), err)
	}
	if side := drawn.Bounds().Dx(); side != 2*(25+2*4) {
		t.Errorf("got a picture of %d pixels on each side", side)
	}
	dark := color.GrayModel.Convert(drawn.At(2*4, 2*4)).(color.Gray).Y
	if light := color.GrayModel.Convert(drawn.At(0, 0)).(color.Gray).Y; dark != 0 || light != 255 {
		t.Errorf("the corner of the code has %d, the border %d; want black and white", dark, light)
	}
	answer = httptest.NewRecorder()
	app.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/openapi.json", nil))
	if document := answer.Body.String(); !strings.Contains(document, `"image/png":{"schema":{"type":"string","format":"binary"}}`) || !strings.Contains(document, `"summary":"Draw a QR code as PNG"`) {
		t.Error("the document lacks the picture or its title")
	}
}
