package toolset_test

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/mcp/toolset"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/schema"
)

// filed returns the schema of a file in base64.
func filed(mimeType string) string {
	return `{"type":"string","contentEncoding":"base64","contentMediaType":"` + mimeType + `"}`
}

func resultSchema(t testing.TB, text string) *schema.Schema {
	t.Helper()
	s, err := schema.Compile(json.RawMessage(text))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestFiles(t *testing.T) {
	t.Parallel()
	png := filed("image/png")
	mixed := `{"type":"object","properties":{"alt":{"type":"string"},"picture":` + png + `,"sound":` + filed("audio/wav") + `,"page":` + filed("application/pdf") + `,"notes":` + filed("text/plain") + `}}`
	for _, test := range []struct {
		name, schema, result string
		want                 string // the expected content in the legacy era
	}{
		{"an image alone", png, ` "AAEC" `, `[{"type":"image","data":"AAEC","mimeType":"image/png"}]`},
		{"audio alone", filed("audio/wav"), `"AAEC"`, `[{"type":"audio","data":"AAEC","mimeType":"audio/wav"}]`},
		{"a type in capitals", filed("IMAGE/PNG"), `"AAEC"`, `[{"type":"image","data":"AAEC","mimeType":"IMAGE/PNG"}]`},
		{"another file", filed("application/pdf"), `"AAEC"`, `[{"type":"resource","resource":{"uri":"toolsrv:/x/make","mimeType":"application/pdf","blob":"AAEC"}}]`},
		{"text", filed("text/csv"), `"YSxiCg=="`, `[{"type":"resource","resource":{"uri":"toolsrv:/x/make","mimeType":"text/csv","text":"a,b\n"}}]`},
		{"text that is not UTF-8", filed("text/csv"), `"//8="`, `[{"type":"resource","resource":{"uri":"toolsrv:/x/make","mimeType":"text/csv","blob":"//8="}}]`},
		{"members", mixed, `{"alt":"a dot", "picture":"AAEC","sound":"AAEC","page" : "AAEC","notes":"aGk="}`,
			`[{"type":"text","text":"{\"alt\":\"a dot\", \"picture\":\"(image/png, 3 bytes)\",\"sound\":\"(audio/wav, 3 bytes)\",\"page\" : \"(application/pdf, 3 bytes)\",\"notes\":\"(text/plain, 2 bytes)\"}"},` +
				`{"type":"image","data":"AAEC","mimeType":"image/png"},{"type":"audio","data":"AAEC","mimeType":"audio/wav"},` +
				`{"type":"resource","resource":{"uri":"toolsrv:/x/make#/page","mimeType":"application/pdf","blob":"AAEC"}},` +
				`{"type":"resource","resource":{"uri":"toolsrv:/x/make#/notes","mimeType":"text/plain","text":"hi"}}]`},
		{"none of them", mixed, `{"alt":"AAEC","picture":null}`, `[{"type":"text","text":"{\"alt\":\"AAEC\",\"picture\":null}"}]`},
		{"a list", `{"type":"array","items":` + filed("font/ttf") + `}`, "\n" + `["AAEC", "AAED"]`,
			`[{"type":"text","text":"\n[\"(font/ttf, 3 bytes)\", \"(font/ttf, 3 bytes)\"]"},{"type":"resource","resource":{"uri":"toolsrv:/x/make#/0","mimeType":"font/ttf","blob":"AAEC"}},{"type":"resource","resource":{"uri":"toolsrv:/x/make#/1","mimeType":"font/ttf","blob":"AAED"}}]`},
		{"an odd member", `{"properties":{"a/~ ö%":` + filed("font/ttf") + `}}`, `{"a/~ ö%":"AAEC"}`,
			`[{"type":"text","text":"{\"a/~ ö%\":\"(font/ttf, 3 bytes)\"}"},{"type":"resource","resource":{"uri":"toolsrv:/x/make#/a~1~0%20%C3%B6%25","mimeType":"font/ttf","blob":"AAEC"}}]`},
		{"escapes and line breaks", png, `"\/\/8=\r\n"`, `[{"type":"image","data":"//8=","mimeType":"image/png"}]`},
		{"not base64", png, `"A-_="`, `[{"type":"text","text":"A-_="}]`},
		{"without its padding", png, `"AAE"`, `[{"type":"text","text":"AAE"}]`},
		{"too much padding", png, `"A==="`, `[{"type":"text","text":"A==="}]`},
		{"padding in the middle", png, `"AA==AAEC"`, `[{"type":"text","text":"AA==AAEC"}]`},
		{"empty", png, `""`, `[{"type":"text","text":""}]`},
		{"a name twice", mixed, `{"picture":"AAEC","picture":"AAEC"}`, `[{"type":"text","text":"{\"picture\":\"AAEC\",\"picture\":\"AAEC\"}"}]`},
		{"another type", png, `3`, `[{"type":"text","text":"3"}]`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := resultOf(t, test.schema, test.result)
			got := answer(r, toolset.Modern)
			if want := `{"content":` + test.want + `,"structuredContent":`; !strings.HasPrefix(got, want) {
				t.Errorf("got\n%s, want\n%s", got, want)
			}
			agree(t, r, got)
		})
	}
}

// resultOf makes a tool return a result that has a schema.
func resultOf(t *testing.T, schema, result string) toolset.Result {
	t.Helper()
	maker := tool("x/make", ends(result, nil))
	maker.Result = resultSchema(t, schema)
	view := setOf(t, tableOf(t, maker), toolset.Options{}).View("", wasmtools.Everybody())
	r, err := view.Call(t.Context(), "x-make", &wasmtools.Call{Principal: wasmtools.Everybody()})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// TestManyFiles makes tools return more files, or files in more places, than may become blocks: the answer is not much larger than the result.
// Proves: Limits hold, one by one and in sum
func TestManyFiles(t *testing.T) {
	t.Parallel()
	const most = 1000
	long := strings.Repeat("k", 10_000)
	small := `"AAAA"` + strings.Repeat(`,"AAAA"`, 2999)
	for _, test := range []struct {
		name, schema, result string
		files                int
	}{
		{"below a long name", `{"properties":{"` + long + `":{"items":` + filed("application/pdf") + `}}}`, `{"` + long + `":[` + small + `]}`, 0},
		{"small files with a long type", `{"items":` + filed("x/"+strings.Repeat("y", 250)) + `}`, "[" + small + "]", most},
		{"beside many values", `{"properties":{"p":` + filed("image/png") + `}}`, `{"p":"AAAA","n":[0` + strings.Repeat(",0", 100_000) + `]}`, 0},
		{"beside some values", `{"properties":{"p":` + filed("image/png") + `}}`, `{"p":"AAAA","n":[0` + strings.Repeat(",0", 10_000) + `]}`, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			r := resultOf(t, test.schema, test.result)
			written := answer(r, toolset.Modern)
			if most := 3*len(test.result) + 1<<20; len(written) > most {
				t.Errorf("a result of %d bytes is answered with %d", len(test.result), len(written))
			}
			if files := len(r.Blocks()) - 1; files != test.files {
				t.Errorf("%d files are blocks, want %d", files, test.files)
			}
			agree(t, r, written)
		})
	}
}

// agree checks that the blocks of a result are the ones in its written form.
func agree(t *testing.T, r toolset.Result, written string) {
	t.Helper()
	type content struct {
		Type, Text, MimeType string
		Data                 []byte
		Resource             struct {
			URI, MimeType, Text string
			Blob                []byte
		}
	}
	var all struct{ Content []content }
	if err := json.Unmarshal([]byte(written), &all); err != nil {
		t.Fatalf("%v: %s", err, written)
	}
	blocks := r.Blocks()
	if len(blocks) != len(all.Content) {
		t.Fatalf("%d blocks, %d are written", len(blocks), len(all.Content))
	}
	for i, b := range blocks {
		w := all.Content[i]
		if w.Type == "resource" {
			w.Text, w.MimeType, w.Data = w.Resource.Text, w.Resource.MimeType, w.Resource.Blob
		}
		if string(b.Kind) != w.Type || b.Text != w.Text || b.MIMEType != w.MimeType || string(b.Data) != string(w.Data) || b.URI != w.Resource.URI {
			t.Errorf("block %d is %+v, and written as %+v", i, b, w)
		}
	}
}

// FuzzFiles checks that whatever a tool returns becomes a readable result on one line, with the bytes of its files.
func FuzzFiles(f *testing.F) {
	for _, seed := range []string{`"AAEC"`, `{"p":"AAEC","q":["//8=","YQ=="]}`, ` {"p" :"\u0041AEC", "q":[]} `, `"a"`, `{"p":"A\n\r\/==","p":1}`, "{\"q\":[\"YQ==\",\n1]}", `"\ud800"`, `null`, `-0`} {
		f.Add([]byte(seed))
	}
	s := resultSchema(f, `{"contentEncoding":"base64","contentMediaType":"image/png","properties":{"p":`+filed("audio/wav")+`,"q":{"items":`+filed("text/plain")+`}}}`)
	f.Fuzz(func(t *testing.T, result []byte) {
		maker := tool("make", ends(string(result), nil))
		maker.Result = s
		view := setOf(t, tableOf(t, maker), toolset.Options{}).View("", wasmtools.Everybody())
		r, err := view.Call(t.Context(), "make", &wasmtools.Call{Principal: wasmtools.Everybody()})
		if err != nil {
			t.Fatal(err)
		}
		if r.Failed() == nil && !json.Valid(result) {
			t.Fatalf("%q is not JSON, but counts as a result", result)
		}
		for _, era := range []toolset.Era{toolset.Legacy, toolset.Modern} {
			written := answer(r, era)
			if strings.ContainsAny(written, "\r\n") {
				t.Fatalf("%q has a line break", written)
			}
			agree(t, r, written)
			var back struct{ StructuredContent any }
			if err := json.Unmarshal([]byte(written), &back); err != nil {
				t.Fatal(err)
			}
			var want any
			if structured := r.Structured(era); structured != nil && json.Unmarshal(structured, &want) == nil && !equal(want, back.StructuredContent) {
				t.Fatalf("%q became %q", structured, written)
			}
		}
		for _, b := range r.Blocks() {
			if b.Kind != toolset.Text && b.Text == "" && base64.StdEncoding.EncodeToString(b.Data) == "" {
				t.Fatalf("%q has an empty file", result)
			}
		}
	})
}

func equal(a, b any) bool {
	x, errX := json.Marshal(a)
	y, errY := json.Marshal(b)
	return errX == nil && errY == nil && string(x) == string(y)
}
