package toolsrv_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	toolsrv "github.com/toolsrv/toolsrv/sdk/go"
)

func with(o toolsrv.Options) toolsrv.Module {
	return toolsrv.Module{Tools: []toolsrv.Tool{toolsrv.Func("add", "Add.", add).With(o)}}
}

func TestOptions(t *testing.T) {
	t.Parallel()
	icons := []toolsrv.Icon{
		{Src: "https://example.com/add.svg", MIMEType: "image/svg+xml", Sizes: []string{"any"}, Theme: "dark"},
		{Src: "data:image/png;base64,iVBORw0KGgo="},
	}
	m := with(toolsrv.Options{
		Title:       "Add <two> numbers",
		Annotations: toolsrv.Annotations{ReadOnly: toolsrv.Yes, Destructive: toolsrv.No, OpenWorld: toolsrv.No},
		Icons:       icons,
	})
	icons[0].Src = "changed by the author later"
	got, err := m.Manifest()
	const want = `{"name":"add","title":"Add <two> numbers","description":"Add.","annotations":{"readOnly":true,"destructive":false,"openWorld":false},` +
		`"icons":[{"src":"https://example.com/add.svg","mimeType":"image/svg+xml","sizes":["any"],"theme":"dark"},{"src":"data:image/png;base64,iVBORw0KGgo="}],"parameters":`
	if err != nil || !strings.Contains(string(got), want) {
		t.Errorf("got %s, %v\nwant %s in it", got, err, want)
	}

	// With replaces earlier options, and does not change the tool that it is called on.
	plain := toolsrv.Func("add", "Add.", add)
	titled := plain.With(toolsrv.Options{Title: "Add"})
	for _, tool := range []toolsrv.Tool{plain, titled.With(toolsrv.Options{})} {
		got, err := toolsrv.Module{Tools: []toolsrv.Tool{tool}}.Manifest()
		if err != nil || !strings.Contains(string(got), `{"name":"add","description":"Add.","parameters":`) {
			t.Errorf("got %s, %v", got, err)
		}
	}
}

func TestOptionsRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		options toolsrv.Options
		want    string
	}{
		{toolsrv.Options{Title: "a\xff"}, `tool "add": its title: it is not UTF-8`},
		{toolsrv.Options{Annotations: toolsrv.Annotations{Idempotent: 3}}, `tool "add": an annotation is Hint(3): use Yes or No`},
		{toolsrv.Options{Annotations: toolsrv.Annotations{ReadOnly: toolsrv.Yes, Destructive: toolsrv.Yes}}, `tool "add": it is both read-only and destructive`},
		{toolsrv.Options{Icons: []toolsrv.Icon{{Src: "https://example.com/"}, {Src: "a.png"}}}, `tool "add": icon 2: its Src is neither an https nor a data URI`},
		{toolsrv.Options{Icons: []toolsrv.Icon{{Src: "https://example.com/" + strings.Repeat("a", 32<<10-19)}}}, `tool "add": the Src of its icons have 32769 bytes together; at most 32768 are allowed`},
	} {
		if got, err := with(c.options).Manifest(); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %s, %v, want %q", got, err, c.want)
		}
	}
}

// The server and all SDKs accept and refuse the same: see testdata/abi/README.md.
func TestOptionsAsTheServer(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../testdata/abi/options.json")
	if err != nil {
		t.Fatal(err)
	}
	var all struct {
		Accepted, Refused []struct {
			Name string
			Tool struct {
				Title       string
				Annotations map[string]bool
				Icons       []toolsrv.Icon
			}
		}
	}
	if err := json.Unmarshal(text, &all); err != nil || len(all.Accepted) == 0 || len(all.Refused) == 0 {
		t.Fatal(len(all.Accepted), len(all.Refused), err)
	}
	for i, c := range append(all.Accepted, all.Refused...) {
		hint := func(name string) toolsrv.Hint {
			switch value, ok := c.Tool.Annotations[name]; {
			case !ok:
				return 0
			case value:
				return toolsrv.Yes
			}
			return toolsrv.No
		}
		_, err := with(toolsrv.Options{
			Title: c.Tool.Title,
			Annotations: toolsrv.Annotations{
				ReadOnly: hint("readOnly"), Destructive: hint("destructive"), Idempotent: hint("idempotent"), OpenWorld: hint("openWorld"),
			},
			Icons: c.Tool.Icons,
		}).Manifest()
		if (err == nil) != (i < len(all.Accepted)) {
			t.Errorf("%s: got %v", c.Name, err)
		}
	}
}
