package capability

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/toolsrv/toolsrv/wasmtools"
)

// Suggest returns the table [[grant]] that grants a tool, or the tools that a pattern matches, all of their needs. What only an operator
// knows has a value to be replaced: the quota, paths and settings. It is TOML, in several lines.
func Suggest(match string, needs wasmtools.Needs) string {
	var b strings.Builder
	fmt.Fprintf(&b, "[[grant]]\nmatch = %s\n", quote(match))
	list := func(key string, entries []string) {
		if len(entries) == 0 {
			return
		}
		quoted := make([]string, len(entries))
		for i, entry := range entries {
			quoted[i] = quote(entry)
		}
		fmt.Fprintf(&b, "%s = [%s]\n", key, strings.Join(quoted, ", "))
	}
	list("http", needs.HTTP)
	if needs.KV {
		b.WriteString("kv = \"16MiB\"\n")
	}
	if needs.Config != nil {
		b.WriteString(exampleSettings(needs.Config))
	}
	if len(needs.Files) > 0 {
		var entries []string
		for _, name := range needs.Files {
			entries = append(entries, fmt.Sprintf("%s = %s", quote(name), quote("/path/to/"+name)))
		}
		fmt.Fprintf(&b, "files = {%s}\n", strings.Join(entries, ", "))
	}
	list("tools", needs.Tools)
	list("secrets_visible", needs.Secrets)
	return b.String()
}

// exampleSettings returns the line for the settings that a schema requires, or, where it requires none, a comment with those that
// there are.
func exampleSettings(schema json.RawMessage) string {
	var declared struct {
		Required   []string
		Properties map[string]json.RawMessage
	}
	if json.Unmarshal(schema, &declared) != nil { // it is at fault, and the file refused
		return ""
	}
	begin, names := "config", declared.Required
	if len(names) == 0 {
		begin, names = "# config", slices.Collect(maps.Keys(declared.Properties))
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	var entries []string
	for _, name := range slices.Compact(names) {
		entries = append(entries, quote(name)+" = "+exampleValue(declared.Properties[name]))
	}
	return begin + " = {" + strings.Join(entries, ", ") + "}\n"
}

// exampleValue returns a value of the type that a schema asks for.
func exampleValue(schema json.RawMessage) string {
	var declared struct {
		Type any
		Enum []any
	}
	_ = json.Unmarshal(schema, &declared) // a schema may be true, or absent
	if len(declared.Enum) > 0 {
		if s, ok := declared.Enum[0].(string); ok {
			return quote(s)
		}
	}
	switch declared.Type {
	case "integer", "number":
		return "0"
	case "boolean":
		return "false"
	case "array":
		return "[]"
	case "object":
		return "{}"
	}
	return `""`
}

// quote returns a string of TOML. What JSON escapes, TOML does in the same way.
func quote(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string never fails
	return strings.ReplaceAll(strings.TrimSpace(b.String()), "\u007f", `\u007f`)
}
