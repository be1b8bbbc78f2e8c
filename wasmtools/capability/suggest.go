package capability

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"net/netip"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/toolsrv/toolsrv/internal/reach"
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
	list("private", nearRanges(needs.HTTP))
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

// nearRanges returns the ranges that a grant of these URLs needs as private: those of special addresses that they name. What other
// names resolve to is not known here.
func nearRanges(urls []string) (ranges []string) {
	for _, u := range urls {
		parsed, err := url.Parse(u)
		if err != nil {
			continue
		}
		host := parsed.Hostname()
		if host == "localhost" || strings.HasSuffix(host, ".localhost") {
			ranges = append(ranges, "127.0.0.1/32", "::1/128")
			continue
		}
		if a, err := netip.ParseAddr(host); err == nil {
			if _, _, special := reach.Special(a); special {
				ranges = append(ranges, netip.PrefixFrom(a, a.BitLen()).String())
			}
		}
	}
	slices.Sort(ranges)
	return slices.Compact(ranges)
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

// exampleValue returns a value that a schema asks for: one that it names, or else the least of its type.
func exampleValue(schema json.RawMessage) string {
	var declared struct {
		Type     any
		Enum     []any
		Examples []any
		Default  any
		Const    any
		Minimum  *float64
	}
	decoder := json.NewDecoder(bytes.NewReader(schema))
	decoder.UseNumber()
	_ = decoder.Decode(&declared) // a schema may be true, or absent
	for _, named := range slices.Concat([]any{declared.Const, declared.Default}, declared.Examples, declared.Enum) {
		switch v := named.(type) {
		case string:
			return quote(v)
		case bool:
			return strconv.FormatBool(v)
		case json.Number:
			if number := v.String(); plainNumber.MatchString(number) && (declared.Type == "integer" || declared.Type == "number") {
				return number
			}
		}
	}
	switch declared.Type {
	case "integer", "number":
		if declared.Minimum != nil && *declared.Minimum > 0 && *declared.Minimum < 1e15 {
			return strconv.FormatFloat(math.Ceil(*declared.Minimum), 'f', -1, 64)
		}
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

// plainNumber matches numbers that JSON and TOML write alike, whatever reads them.
var plainNumber = regexp.MustCompile(`^-?\d{1,15}(\.\d{1,15})?$`)

// quote returns a string of TOML. What JSON escapes, TOML does in the same way.
func quote(s string) string {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(s) // a string never fails
	return strings.ReplaceAll(strings.TrimSpace(b.String()), "\u007f", `\u007f`)
}
