package schemas_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/schemas"
)

// files returns the places of files in a Media, with their types, sorted.
func files(m *schemas.Media, place string) (all []string) {
	if m == nil {
		return nil
	}
	if m.Type != "" {
		all = append(all, place+" "+m.Type)
	}
	all = append(all, files(m.Items, place+"[]")...)
	for name, member := range m.Members {
		all = append(all, files(member, place+"."+name)...)
	}
	slices.Sort(all)
	return all
}

func TestMedia(t *testing.T) {
	t.Parallel()
	const png = `{"type":"string","contentEncoding":"base64","contentMediaType":"image/png"}`
	for text, want := range map[string]string{
		png:    " image/png",
		`true`: "",
		`{"type":"string","contentMediaType":"image/png"}`:                                                                                              "",
		`{"type":"string","contentEncoding":"base64"}`:                                                                                                  "",
		`{"type":"string","contentEncoding":"base32","contentMediaType":"image/png"}`:                                                                   "",
		`{"type":"string","contentEncoding":"base64","contentMediaType":"png"}`:                                                                         "",
		`{"type":"string","contentEncoding":"base64","contentMediaType":"image/` + strings.Repeat("x", 300) + `"}`:                                      "",
		`{"type":"string","contentEncoding":"base64","contentMediaType":"Audio/WAV; codecs=1"}`:                                                         " Audio/WAV; codecs=1",
		`{"type":"object","properties":{"a":` + png + `,"b":{"type":"string"},"c":{"type":"array","items":` + png + `}}}`:                               ".a image/png|.c[] image/png",
		`{"$ref":"#/$defs/a","$defs":{"a":{"properties":{"x":{"$ref":"#/$defs/b"}}},"b":` + png + `}}`:                                                  ".x image/png",
		`{"properties":{"x":{"anyOf":[` + png + `,{"type":"null"}]}}}`:                                                                                  ".x image/png",
		`{"allOf":[{"properties":{"x":` + png + `}}],"oneOf":[{"properties":{"x":{"type":"string"},"y":` + png + `}}]}`:                                 ".x image/png|.y image/png",
		`{"properties":{"next":{"$ref":"#"},"x":` + png + `}}`:                                                                                          ".x image/png",
		`{"if":{"properties":{"i":` + png + `}},"then":{"properties":{"t":` + png + `}},"not":{"properties":{"n":` + png + `}}}`:                        ".t image/png",
		`{"$schema":"http://json-schema.org/draft-07/schema#","$ref":"#/definitions/a","properties":{"x":` + png + `},"definitions":{"a":` + png + `}}`: " image/png",
		`{"$schema":"http://json-schema.org/draft-06/schema#","properties":{"x":` + png + `}}`:                                                          "",
		`{"properties":{"x":{"type":"string","contentEncoding":"base64","content\u004dediaType":"image/png"}}}`:                                         ".x image/png",
	} {
		s, err := schemas.Compile(json.RawMessage(text))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		if got := strings.Join(files(s.Media(), ""), "|"); got != want {
			t.Errorf("%s: got %q, want %q", text, got, want)
		}
	}
}

// TestMediaOfMany checks that references which double at each step cost no more than the bound.
func TestMediaOfMany(t *testing.T) {
	t.Parallel()
	var definitions []string
	for i := range 12 { // gives as many ways as Compile allows, which is 10,000
		definitions = append(definitions, fmt.Sprintf(`"d%d":{"properties":{"a":{"$ref":"#/$defs/d%d"},"b":{"$ref":"#/$defs/d%d"}}}`, i, i+1, i+1))
	}
	definitions = append(definitions, `"d12":{"contentEncoding":"base64","contentMediaType":"image/png"}`)
	s, err := schemas.Compile(json.RawMessage(`{"$ref":"#/$defs/d0","$defs":{` + strings.Join(definitions, ",") + `}}`))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(files(s.Media(), "")); n == 0 || n > 5000 {
		t.Errorf("got %d files", n)
	}
}
