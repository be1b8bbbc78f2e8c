package toolsrv_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	toolsrv "github.com/toolsrv/toolsrv/sdk/go"
	"github.com/toolsrv/toolsrv/sdk/go/toolsrvtest"
)

var update = flag.Bool("update", false, "write the schemas of testdata/derive again")

// The types of testdata/derive. Those of Rust have the same names.
type (
	Scalars struct {
		Text  string  `json:"text"`
		Flag  bool    `json:"flag"`
		Whole int64   `json:"whole"`
		Count uint64  `json:"count"`
		I8    int8    `json:"i8"`
		I16   int16   `json:"i16"`
		I32   int32   `json:"i32"`
		U8    uint8   `json:"u8"`
		U16   uint16  `json:"u16"`
		U32   uint32  `json:"u32"`
		F32   float32 `json:"f32"`
		F64   float64 `json:"f64"`
	}
	Optional struct {
		Text  *string  `json:"text"`
		Whole *int64   `json:"whole" minimum:"1" maximum:"9"`
		Texts []string `json:"texts" default:"[]"`
		Point *Point   `json:"point"`
	}
	Point struct {
		X float64 `json:"x"`
		Y float64 `json:"y"`
	}
	Lists struct {
		Texts  []string    `json:"texts"`
		Matrix [][]float64 `json:"matrix"`
		Pair   [2]int64    `json:"pair"`
		Points []Point     `json:"points"`
		Gaps   []*int64    `json:"gaps"`
	}
	Maps struct {
		Counts map[string]int64    `json:"counts"`
		Points map[string]Point    `json:"points"`
		Lists  map[string][]string `json:"lists"`
	}
	Order struct {
		Customer string  `json:"customer"`
		Ship     Address `json:"ship"`
		Bill     Address `json:"bill"`
		Items    []Item  `json:"items"`
	}
	Address struct {
		Street  string `json:"street"`
		Country string `json:"country" default:"DE"`
	}
	Item struct {
		Name  string  `json:"name"`
		Price float64 `json:"price"`
		Parts []Part  `json:"parts" default:"[]"`
	}
	Part struct {
		Code string `json:"code"`
	}
	Tree struct {
		Name     string `json:"name"`
		Children []Tree `json:"children" default:"[]"`
	}
	Defaults struct {
		Text  string   `json:"text" default:"world"`
		Empty string   `json:"empty" default:""`
		Whole int64    `json:"whole" default:"-3"`
		Ratio float64  `json:"ratio" default:"0.5"`
		Flag  bool     `json:"flag" default:"true"`
		List  []string `json:"list" default:"[\"a\",\"b\"]"`
		Unset string   `json:"unset" required:"false"`
	}
	Bounds struct {
		Percent  int64    `json:"percent" minimum:"0" maximum:"100"`
		Positive float64  `json:"positive" exclusiveMinimum:"0"`
		Below    float64  `json:"below" exclusiveMaximum:"1.5"`
		Name     string   `json:"name" minLength:"1" maxLength:"5"`
		Code     string   `json:"code" pattern:"^[A-Z]{2}-\\d+$"`
		Mail     string   `json:"mail" format:"email"`
		Link     string   `json:"link" format:"uri"`
		Words    []string `json:"words" minItems:"1" maxItems:"3"`
	}
	Choices struct {
		Level string `json:"level" enum:"debug,info,warn"`
		Size  int64  `json:"size" enum:"1,2,3"`
		Order string `json:"order" enum:"asc,desc" default:"asc"`
	}
	Described struct {
		City  string  `json:"city" description:"Where to look: a city's name, in any language." examples:"Paris,Rome"`
		Days  int64   `json:"days" description:"How many days." default:"7" examples:"1,14"`
		Point Point   `json:"point" description:"Its place on the map."`
		Extra *string `json:"extra" description:"Whatever \"else\" <there> is."`
	}
	Members struct {
		Point      Point            `json:"point"`
		PointSaid  Point            `json:"point_said" description:"What it is."`
		Points     []Point          `json:"points"`
		PointsSaid []Point          `json:"points_said" description:"What it is."`
		ByName     map[string]Point `json:"by_name"`
		ByNameSaid map[string]Point `json:"by_name_said" description:"What it is."`
		Level      string           `json:"level" enum:"debug,info,warn"`
		LevelSaid  string           `json:"level_said" enum:"debug,info,warn" description:"What it is."`
		Words      Words            `json:"words"`
		WordsSaid  Words            `json:"words_said" description:"What it is."`
		Table      Table            `json:"table"`
		TableSaid  Table            `json:"table_said" description:"What it is."`
	}
	Maybes struct {
		Point      *Point            `json:"point"`
		PointSaid  *Point            `json:"point_said" description:"What it is."`
		Points     *[]Point          `json:"points"`
		PointsSaid *[]Point          `json:"points_said" description:"What it is."`
		ByName     *map[string]Point `json:"by_name"`
		ByNameSaid *map[string]Point `json:"by_name_said" description:"What it is."`
		Level      *string           `json:"level" enum:"debug,info,warn"`
		LevelSaid  *string           `json:"level_said" enum:"debug,info,warn" description:"What it is."`
		Words      *Words            `json:"words"`
		WordsSaid  *Words            `json:"words_said" description:"What it is."`
		Table      *Table            `json:"table"`
		TableSaid  *Table            `json:"table_said" description:"What it is."`
	}
	Words   []string
	Table   map[string]int64
	Renamed struct {
		FirstName string `json:"firstName"`
		Type      string `json:"type"`
		Dashed    int64  `json:"with-dash"`
		Hidden    string `json:"-"`
	}
	Anything struct {
		Value json.RawMessage            `json:"value"`
		List  []json.RawMessage          `json:"list"`
		Map   map[string]json.RawMessage `json:"map"`
		Maybe json.RawMessage            `json:"maybe" required:"false"`
	}
	Composed struct {
		Paging
		*Filter
		Query string `json:"query"`
	}
	Paging struct {
		Page  int64 `json:"page" default:"1" minimum:"1"`
		Limit int64 `json:"limit" default:"20" maximum:"100"`
	}
	Filter struct {
		After string `json:"after"`
	}
	Omitted struct {
		Text  string     `json:"text,omitempty"`
		Whole int64      `json:"whole,omitzero"`
		Point *Point     `json:"point,omitempty"`
		Texts []string   `json:"texts,omitempty"`
		Paths [][]string `json:"paths,omitempty" required:"true"`
	}
	Times struct {
		At      time.Time     `json:"at"`
		Until   *time.Time    `json:"until"`
		Timeout time.Duration `json:"timeout" minimum:"0"`
	}
	Bytes struct {
		Data   []byte           `json:"data"`
		Digest [4]byte          `json:"digest"`
		Quoted int64            `json:"quoted,string"`
		ByID   map[int]string   `json:"by_id"`
		ByBit  map[uint8]string `json:"by_bit"`
		Shade  Shade            `json:"shade"`
	}
	Shade struct{ dark bool }
	Media struct {
		Picture   []byte  `json:"picture" contentMediaType:"image/png"`
		Said      Raw     `json:"said" contentMediaType:"image/png" description:"What it is."`
		Recording string  `json:"recording" contentEncoding:"base64" contentMediaType:"audio/wav"`
		Page      string  `json:"page" contentMediaType:"text/html"`
		Maybe     *[]byte `json:"maybe" contentMediaType:"image/png"`
		Data      Raw     `json:"data"`
	}
	Raw []byte
	PNG []byte
)

// JSONSchema makes PNG a toolsrv.Describer.
func (PNG) JSONSchema() string {
	return `{"type":"string","contentEncoding":"base64","contentMediaType":"image/png"}`
}

// JSONSchema makes Shade a toolsrv.Describer.
func (Shade) JSONSchema() string { return `{"type": "string", "enum": ["dark", "light"]}` }

// MarshalJSON writes the shade's name.
func (s Shade) MarshalJSON() ([]byte, error) {
	if s.dark {
		return []byte(`"dark"`), nil
	}
	return []byte(`"light"`), nil
}

// UnmarshalJSON reads the shade's name.
func (s *Shade) UnmarshalJSON(text []byte) error {
	s.dark = string(text) == `"dark"`
	return nil
}

// A golden is a file of testdata/derive.
type golden struct {
	Guards    string   `json:"guards"`
	Languages []string `json:"languages"`
	Arguments *judged  `json:"arguments,omitempty"`
	Result    *judged  `json:"result,omitempty"`
}

type judged struct {
	Schema   json.RawMessage   `json:"schema"`
	Accepted []json.RawMessage `json:"accepted"`
	Refused  []json.RawMessage `json:"refused"`
}

// takes returns a module whose tool takes and returns a T.
func takes[T any]() toolsrv.Module {
	return toolsrv.Module{Tools: []toolsrv.Tool{toolsrv.Func("t", "T.", func(_ *toolsrv.Call, in T) (T, error) { return in, nil })}}
}

// gives returns a module whose tool returns a T.
func gives[T any]() toolsrv.Module {
	return toolsrv.Module{Tools: []toolsrv.Tool{toolsrv.Func("t", "T.", func(*toolsrv.Call, struct{}) (out T, _ error) { return out, nil })}}
}

// TestGoldens derives the schemas of testdata/derive. The test helper checks each value that a file accepts or refuses, and decodes it.
// test/conformance checks the same values with the server's validation.
func TestGoldens(t *testing.T) {
	t.Parallel()
	tests := map[string]toolsrv.Module{
		"scalars": takes[Scalars](), "optional": takes[Optional](), "lists": takes[Lists](), "maps": takes[Maps](),
		"nested": takes[Order](), "recursive": takes[Tree](), "defaults": takes[Defaults](), "bounds": takes[Bounds](),
		"choices": takes[Choices](), "described": takes[Described](), "members": takes[Members](), "maybes": takes[Maybes](), "renamed": takes[Renamed](), "anything": takes[Anything](),
		"number": gives[float64](), "list": gives[[]Point](), "map": gives[map[string]int64](), "maybe": gives[[]*Point](),
		"embedded": takes[Composed](), "omitted": takes[Omitted](), "times": takes[Times](), "bytes": takes[Bytes](),
		"media": takes[Media](), "picture": gives[PNG](),
	}
	files, err := filepath.Glob("../../testdata/derive/*.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if _, ok := tests[strings.TrimSuffix(filepath.Base(file), ".json")]; !ok {
			t.Errorf("%s: this test has no type for it", file)
		}
	}
	for name, m := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			checkGolden(t, filepath.Join("../../testdata/derive", name+".json"), m)
		})
	}
}

func checkGolden(t *testing.T, file string, m toolsrv.Module) {
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var want golden
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	var manifest struct {
		Tools []struct{ Parameters, Result json.RawMessage }
	}
	if err := json.Unmarshal(toolsrvtest.Manifest(t, m), &manifest); err != nil {
		t.Fatal(err)
	}
	got := manifest.Tools[0]
	if *update {
		if want.Arguments != nil {
			want.Arguments.Schema = got.Parameters
		}
		if want.Result != nil {
			want.Result.Schema = got.Result
		}
		if err := os.WriteFile(file, want.text(t), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if want.Result != nil && compact(t, got.Result) != compact(t, want.Result.Schema) {
		t.Errorf("result: got %s\nwant %s", got.Result, compact(t, want.Result.Schema))
	}
	if want.Arguments == nil {
		return
	}
	if compact(t, got.Parameters) != compact(t, want.Arguments.Schema) {
		t.Errorf("arguments: got %s\nwant %s", got.Parameters, compact(t, want.Arguments.Schema))
	}
	for _, v := range want.Arguments.Accepted {
		if _, err := toolsrvtest.Call(t, m, "t", string(v)); err != nil {
			t.Errorf("arguments %s: %v, want them accepted", compact(t, v), err)
		}
	}
	for _, v := range want.Arguments.Refused {
		if got, err := toolsrvtest.Call(t, m, "t", string(v)); err == nil {
			t.Errorf("arguments %s: got %s, want them refused", compact(t, v), got)
		}
	}
}

// text returns the file's text: schemas indented, each value on a line.
func (g *golden) text(t *testing.T) []byte {
	t.Helper()
	var out bytes.Buffer
	fmt.Fprintf(&out, "{\n  \"guards\": %s,\n  \"languages\": %s", plain(t, g.Guards), plain(t, g.Languages))
	for _, part := range []struct {
		name string
		*judged
	}{{"arguments", g.Arguments}, {"result", g.Result}} {
		if part.judged == nil {
			continue
		}
		fmt.Fprintf(&out, ",\n  %q: {\n    \"schema\": ", part.name)
		if err := json.Indent(&out, part.Schema, "    ", "  "); err != nil {
			t.Fatal(err)
		}
		writeValues(t, &out, "accepted", part.Accepted)
		writeValues(t, &out, "refused", part.Refused)
		out.WriteString("\n  }")
	}
	out.WriteString("\n}\n")
	return out.Bytes()
}

func writeValues(t *testing.T, to *bytes.Buffer, name string, values []json.RawMessage) {
	t.Helper()
	fmt.Fprintf(to, ",\n    %q: [", name)
	for i, v := range values {
		fmt.Fprintf(to, "%s\n      %s", strings.Repeat(",", min(i, 1)), compact(t, v))
	}
	to.WriteString("\n    ]")
}

func plain(t *testing.T, v any) string {
	t.Helper()
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out.String())
}

func compact(t *testing.T, text []byte) string {
	t.Helper()
	var out bytes.Buffer
	if err := json.Compact(&out, text); err != nil {
		t.Fatal(err)
	}
	return out.String()
}
