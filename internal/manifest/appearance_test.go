package manifest_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/manifest"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/gotool"
)

// pixel is a PNG of one pixel.
const pixel = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

// The members of a manifest about a tool's appearance and effects are read, and written in the same form.
func TestParseManifestAppearance(t *testing.T) {
	t.Parallel()
	members := `,"title":"Add two numbers","annotations":{"readOnly":true,"destructive":false,"openWorld":false},` +
		`"icons":[{"src":"https://example.com/add.svg?v=2","mimeType":"image/svg+xml","sizes":["any"],"theme":"dark"},{"src":"` + pixel + `","sizes":["1x1","48x48"]}]`
	m, err := manifest.Parse([]byte(one(members)))
	if err != nil {
		t.Fatal(err)
	}
	want := manifest.Tool{
		Name: "add", Title: "Add two numbers", Description: "Add.", Parameters: json.RawMessage(`{"type":"object"}`),
		Annotations: wasmtools.Annotations{ReadOnly: new(true), Destructive: new(false), OpenWorld: new(false)},
		Icons: []wasmtools.Icon{
			{Src: "https://example.com/add.svg?v=2", MIMEType: "image/svg+xml", Sizes: []string{"any"}, Theme: "dark"},
			{Src: pixel, Sizes: []string{"1x1", "48x48"}},
		},
	}
	if !reflect.DeepEqual(m.Tools[0], want) {
		t.Errorf("got %+v, want %+v", m.Tools[0], want)
	}
	written, err := json.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	again, err := manifest.Parse(written)
	if err != nil || !reflect.DeepEqual(again, m) {
		t.Errorf("written as %s, which is read as %+v, %v", written, again, err)
	}
}

// A tool without these members is written as it was before they existed.
func TestManifestWithoutAppearance(t *testing.T) {
	t.Parallel()
	for _, members := range []string{"", `,"title":"","annotations":{},"icons":[]`} {
		m, err := manifest.Parse([]byte(one(members)))
		if err != nil {
			t.Fatal(err)
		}
		got, err := json.Marshal(m)
		if err != nil || string(got) != one("") {
			t.Errorf("%s: got %s, %v", members, got, err)
		}
	}
}

func TestParseManifestRefusesAppearance(t *testing.T) {
	t.Parallel()
	icon := func(members string) string { return `,"icons":[{` + members + `}]` }
	for name, c := range map[string]struct{ members, want string }{
		"title a number":               {`,"title":1`, "tools[0].title must be a string, not a number"},
		"title null":                   {`,"title":null`, "tools[0].title must be a string, not null: leave it out"},
		"title blank":                  {`,"title":" \t"`, "tools[0].title: it is blank"},
		"title of two lines":           {`,"title":"a\nb"`, "tools[0].title: it has line breaks"},
		"title with a separator":       {`,"title":"a\u2028b"`, "tools[0].title: it has line breaks"},
		"title with an escape":         {`,"title":"a\u001b[31m"`, "other characters that control how text is shown"},
		"title too long":               {`,"title":"` + strings.Repeat("ä", 201) + `"`, "tools[0].title: 201 characters are too many; at most 200"},
		"title misspelt":               {`,"titel":"a"`, `tools[0].titel: unknown member; did you mean "title"?`},
		"annotations a list":           {`,"annotations":["readOnly"]`, "tools[0].annotations must be an object, not an array"},
		"annotations null":             {`,"annotations":null`, "tools[0].annotations must be an object, not null: leave it out"},
		"annotation in words":          {`,"annotations":{"readOnly":"yes"}`, "tools[0].annotations.readOnly must be a boolean, not a string: leave it out"},
		"annotation null":              {`,"annotations":{"openWorld":null}`, "tools[0].annotations.openWorld must be a boolean, not null"},
		"annotation with MCP's name":   {`,"annotations":{"readOnlyHint":true}`, `tools[0].annotations.readOnlyHint: unknown member; did you mean "readOnly"?`},
		"annotation unknown":           {`,"annotations":{"audience":["user"]}`, "the members are readOnly, destructive, idempotent and openWorld"},
		"annotation twice":             {`,"annotations":{"readOnly":true,"readOnly":false}`, "tools[0].annotations.readOnly appears twice"},
		"annotations that contradict":  {`,"annotations":{"readOnly":true,"destructive":true}`, "tools[0].annotations: the tool is both readOnly and destructive"},
		"icons an object":              {`,"icons":{}`, "tools[0].icons must be an array, not an object"},
		"icon a string":                {`,"icons":["https://example.com/a.png"]`, "tools[0].icons[0] must be an object, not a string"},
		"icon without src":             {icon(`"mimeType":"image/png"`), "tools[0].icons[0].src is missing: say where the picture is"},
		"icon's member":                {icon(`"src":"https://a.example/","mimetype":"image/png"`), `tools[0].icons[0].mimetype: unknown member; did you mean "mimeType"?`},
		"src null":                     {icon(`"src":null`), "tools[0].icons[0].src must be a string, not null"},
		"src empty":                    {icon(`"src":""`), "tools[0].icons[0].src: it is empty"},
		"src of http":                  {icon(`"src":"http://a.example/i.png"`), "is neither an https nor a data URI"},
		"src a path":                   {icon(`"src":"/i.png"`), "is neither an https nor a data URI"},
		"src without host":             {icon(`"src":"https:///i.png"`), "is not an address: write a host"},
		"src with a port only":         {icon(`"src":"https://:443/i.png"`), "is not an address"},
		"src a script":                 {icon(`"src":"javascript:alert(1)"`), "is neither an https nor a data URI"},
		"src a file":                   {icon(`"src":"file:///etc/passwd"`), "is neither an https nor a data URI"},
		"src with a password":          {icon(`"src":"https://me:secret@a.example/i.png"`), "tools[0].icons[0].src: it has a user's name or password"},
		"src with a space":             {icon(`"src":"https://a.example/a b"`), "is not an address"},
		"src with a line break":        {icon(`"src":"https://a.example/\n"`), "is not an address"},
		"src with markup":              {icon(`"src":"https://a.example/\"><script>"`), "is not an address"},
		"src beyond ASCII":             {icon(`"src":"https://ä.example/"`), "is not an address"},
		"src with half an escape":      {icon(`"src":"https://a.example/%2"`), "is not an address"},
		"src in capitals":              {icon(`"src":"HTTPS://a.example/"`), "is neither an https nor a data URI"},
		"data of a page":               {icon(`"src":"data:text/html;base64,PGI+"`), "a data URI must hold a picture in base64"},
		"data as text":                 {icon(`"src":"data:image/svg+xml,%3Csvg/%3E"`), "a data URI must hold a picture in base64"},
		"data without type":            {icon(`"src":"data:;base64,PGI+"`), "a data URI must hold a picture in base64"},
		"data broken":                  {icon(`"src":"data:image/png;base64,iVB"`), "is not base64 with its padding"},
		"data on two lines":            {icon(`"src":"data:image/png;base64,iVBO\nRw0K"`), "is not base64 with its padding"},
		"data empty":                   {icon(`"src":"data:image/png;base64,"`), "is not base64 with its padding"},
		"data of another type":         {icon(`"src":"` + pixel + `","mimeType":"image/jpeg"`), "the data is image/png, but mimeType says image/jpeg"},
		"mimeType not of a picture":    {icon(`"src":"https://a.example/","mimeType":"text/html"`), `tools[0].icons[0].mimeType: "text/html" is not a picture's type`},
		"mimeType with a parameter":    {icon(`"src":"https://a.example/","mimeType":"image/png; a=b"`), "is not a picture's type"},
		"sizes a string":               {icon(`"src":"https://a.example/","sizes":"48x48"`), "tools[0].icons[0].sizes must be an array, not a string"},
		"size a number":                {icon(`"src":"https://a.example/","sizes":[48]`), "tools[0].icons[0].sizes[0] must be a string, not a number"},
		"size without height":          {icon(`"src":"https://a.example/","sizes":["48x48","48"]`), `tools[0].icons[0].sizes[1]: "48" is not a size`},
		"size of nothing":              {icon(`"src":"https://a.example/","sizes":["0x0"]`), `"0x0" is not a size`},
		"too many sizes":               {icon(`"src":"https://a.example/","sizes":[` + strings.Repeat(`"any",`, 16) + `"any"]`), "tools[0].icons[0].sizes: 17 are too many; at most 16"},
		"theme":                        {icon(`"src":"https://a.example/","theme":"blue"`), `tools[0].icons[0].theme: "blue" is not known: it can be light or dark`},
		"too many icons":               {`,"icons":[` + strings.Repeat(`{"src":"https://a.example/"},`, 8) + `{"src":"https://a.example/"}]`, "tools[0].icons: 9 are too many; at most 8"},
		"icons too large":              {icon(`"src":"https://a.example/` + strings.Repeat("a", 32<<10) + `"`), "tools[0].icons: their src have 32786 bytes in total; at most 32768 are allowed"},
		"an icon with an endless name": {icon(`"src":"ftp://` + strings.Repeat("a", 30000) + `"`), "is neither an https nor a data URI"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, err := manifest.Parse([]byte(one(c.members)))
			if err == nil {
				t.Fatalf("got %+v, want an error with %q", m, c.want)
			}
			if !strings.Contains(err.Error(), c.want) || len(err.Error()) > 400 {
				t.Errorf("got %q (%d bytes), want %q in it", err, len(err.Error()), c.want)
			}
		})
	}
}

// The server and the SDKs accept and refuse the same: see testdata/abi/README.md.
func TestParseManifestOptions(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../testdata/abi/options.json")
	if err != nil {
		t.Fatal(err)
	}
	var all struct {
		Accepted, Refused []struct {
			Name string
			Tool map[string]json.RawMessage
		}
	}
	if err := json.Unmarshal(text, &all); err != nil || len(all.Accepted) < 15 || len(all.Refused) < 50 {
		t.Fatalf("%d and %d cases, %v", len(all.Accepted), len(all.Refused), err)
	}
	for i, c := range append(all.Accepted, all.Refused...) {
		members := ""
		for name, value := range c.Tool {
			members += fmt.Sprintf(",%q:%s", name, value)
		}
		if _, err := manifest.Parse([]byte(one(members))); (err == nil) != (i < len(all.Accepted)) {
			t.Errorf("%s: got %v", c.Name, err)
		}
	}
}

// The same rules apply to a tool of a program and to one in a file.
func TestCheckAppearance(t *testing.T) {
	t.Parallel()
	for i, c := range []struct {
		change func(*wasmtools.Tool)
		want   string
	}{
		{func(t *wasmtools.Tool) {
			t.Title, t.Icons = "Add", []wasmtools.Icon{{Src: pixel}}
			t.Annotations = wasmtools.Annotations{ReadOnly: new(false), Destructive: new(true)}
		}, ""},
		{func(t *wasmtools.Tool) { t.Title = "a\nb" }, "tool /add: title: it has line breaks"},
		{func(t *wasmtools.Tool) { t.Title = "\xff" }, "tool /add: title: it is not UTF-8"},
		{func(t *wasmtools.Tool) {
			t.Annotations = wasmtools.Annotations{ReadOnly: new(true), Destructive: new(true)}
		}, "tool /add: annotations: the tool is both"},
		{func(t *wasmtools.Tool) { t.Icons = []wasmtools.Icon{{Src: "http://a.example/"}} }, "tool /add: icons[0].src: "},
		{func(t *wasmtools.Tool) { t.Icons = []wasmtools.Icon{{Src: "https://a.example/\xff"}} }, "is not an address"},
	} {
		tool := gotool.New("add", "Add.", func(context.Context, struct{}) (int, error) { return 0, nil })
		c.change(tool)
		_, err := wasmtools.NewRouteTable(tool)
		if (err == nil) != (c.want == "") || err != nil && !strings.Contains(fmt.Sprint(err), c.want) {
			t.Errorf("%d: got %v, want %q", i, err, c.want)
		}
	}
}
