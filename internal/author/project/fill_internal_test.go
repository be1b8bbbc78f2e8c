package project

import (
	"strings"
	"testing"
)

func TestFill(t *testing.T) {
	t.Parallel()
	values := map[string]string{"Name": "csv", "Yes": "true", "No": ""}
	for _, c := range []struct{ template, want string }{
		{"", ""},
		{"a {{.Name}} b", "a csv b"},
		{"{{ .Name }}{{.No}}.", "csv."},
		{"{{if .Yes}}a{{else}}b{{end}}c", "ac"},
		{"{{if .No}}a{{else}}b{{end}}c", "bc"},
		{"{{if not .No}}a{{else}}b{{end}}c", "ac"},
		{"{{if .No}}a{{if .Yes}}b{{else}}c{{end}}d{{end}}e", "e"},
		{"{{if .Yes}}a{{if .No}}b{{else}}c{{end}}d{{end}}e", "acde"},
		{"{{if .No}}{{else}}{{if .Yes}}a{{end}}b{{end}}", "ab"},
		{"a \n\t{{- if .Yes}}\nb\n{{- end}}\nc\n", "a\nb\nc\n"},
		{"a\n{{- if .No}}\nb\n{{- end}}\nc\n", "a\nc\n"},
		{"{{if .Yes}}x{{.Name}}{{end}}}}", "xcsv}}"},
	} {
		if got, err := fill(c.template, values); err != nil || got != c.want {
			t.Errorf("%q: got %q, %v, want %q", c.template, got, err, c.want)
		}
	}
	for template, want := range map[string]string{
		"{{.None}}":                        "{{.None}}",
		"{{if .None}}{{end}}":              "{{if .None}}",
		"{{range .Name}}{{end}}":           "{{range .Name}}",
		"{{not .Name}}":                    "{{not .Name}}",
		"{{else}}":                         "{{else}}",
		"{{end}}":                          "{{end}}",
		"{{if .Yes}}{{else}}{{else}}":      "{{else}}",
		"{{if .Yes}}":                      "without {{end}}",
		"{{if .Yes}}a{{else if .No}}{{end": "{{else if .No}}",
		"a {{.Name":                        "without }}",
	} {
		if got, err := fill(template, values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %q, %v, want an error with %q", template, got, err, want)
		}
	}
}
