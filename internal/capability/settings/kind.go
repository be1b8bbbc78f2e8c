package settings

import (
	"bytes"
	"encoding/json"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/toolsrv/toolsrv/internal/keys"
	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/capability"
	"github.com/toolsrv/toolsrv/wasmtools/config/key"
)

// Kind returns the capability. Its need is the JSON Schema of the settings, an object.
func Kind() capability.Kind {
	return capability.Kind{
		Name: name, Module: Module, Set: Set(),
		Object: func(declared json.RawMessage) error {
			_, err := Compile(declared)
			return err
		},
		New:     func() capability.Rule { return &Rule{} },
		Review:  review,
		Suggest: func(n wasmtools.Need) string { return exampleSettings(n.Object) },
		Reaches: func(any) []capability.Reached { return nil }, // a tool only reads its settings, and reaches nothing
		Open:    open,
	}
}

// name is the name of the capability, and the key of a grant.
const name = "settings"

// A Rule is the part of one grant in the configuration that concerns settings.
type Rule struct {
	// Settings are a JSON object with its members in order, or nil.
	Settings json.RawMessage
}

var _ capability.Rule = (*Rule)(nil)

// Keys returns the readers of the rule's keys.
func (r *Rule) Keys(string) key.Table {
	return key.Table{
		// a table | the tool's settings, which must fit the schema that it declares
		"settings": keys.Object(&r.Settings),
	}
}

// Shown returns what a log may show of the rule.
func (r *Rule) Shown() []key.Shown { return []key.Shown{key.Silent(name, string(r.Settings))} }

func review(v *capability.Review, from capability.Rule) {
	if from.(*Rule).Settings != nil && len(v.Needs) == 0 {
		v.Unneeded(name, name)
	}
}

// open grants settings. The last ones apply. Without any, the schema's defaults apply if they suffice: a default comes from the author, and needs no
// grant.
func open(capability.Host) capability.Configure {
	return func(capability.Configuration) capability.Decide {
		var made madeSettings
		return func(_ string, n wasmtools.Need, matching []capability.Given) (any, []wasmtools.Missing) {
			var last json.RawMessage
			match := ""
			for _, given := range matching {
				if r := given.Rule.(*Rule); r.Settings != nil {
					last, match = r.Settings, given.Match
				}
			}
			made := made.of(n.Object, last)
			lacks := wasmtools.Missing{Capability: name}
			switch {
			case made.invalid != nil:
				lacks.Cause, lacks.Detail = wasmtools.Unusable, made.invalid.Error()
			case made.err == nil:
				return capability.Settings(made.settings), nil
			case last == nil:
				lacks.Detail = made.err.Error()
			default:
				lacks.Cause, lacks.Match, lacks.Detail = wasmtools.Unusable, match, made.err.Error()
			}
			return nil, []wasmtools.Missing{lacks}
		}
	}
}

// maxMade is how many settings are kept for further tools. Each can have a megabyte, and so can its schema.
const maxMade = 16

// madeSettings caches settings by their source. A module has one schema for all of its tools, and there may be a thousand tools.
type madeSettings struct {
	mu  sync.Mutex
	all map[source]*made
}

// A source identifies a schema and granted settings by the addresses of their first bytes. Neither text changes. granted is nil if nothing was
// granted.
type source struct{ schema, granted *byte }

// made is the result for one source.
type made struct {
	make     func() // once
	settings []byte
	invalid  error // why the schema can't be used
	err      error // why the settings don't fit it
}

// of returns the result for a schema and granted settings.
func (m *madeSettings) of(schema, granted json.RawMessage) *made {
	from := source{first(schema), first(granted)}
	m.mu.Lock()
	one := m.all[from]
	if one == nil {
		if m.all == nil || len(m.all) == maxMade {
			m.all = map[source]*made{}
		}
		one = &made{}
		one.make = sync.OnceFunc(func() {
			var compiled *Schema
			if compiled, one.invalid = Compile(schema); one.invalid == nil {
				one.settings, one.err = compiled.Apply(granted)
			}
		})
		m.all[from] = one
	}
	m.mu.Unlock()
	one.make()
	return one
}

func first(b []byte) *byte {
	if len(b) == 0 {
		return nil
	}
	return &b[0]
}

// exampleSettings returns the line for the settings that a schema requires, or, if it requires none, a comment with its settings.
func exampleSettings(schema json.RawMessage) string {
	var declared struct {
		Required   []string
		Properties map[string]json.RawMessage
	}
	if json.Unmarshal(schema, &declared) != nil { // the schema is at fault, and the file is refused for it
		return ""
	}
	begin, names := name, declared.Required
	if len(names) == 0 {
		begin, names = "# "+name, slices.Collect(maps.Keys(declared.Properties))
	}
	if len(names) == 0 {
		return ""
	}
	slices.Sort(names)
	var entries []string
	for _, member := range slices.Compact(names) {
		entries = append(entries, keys.Quote(member)+" = "+exampleValue(declared.Properties[member]))
	}
	return begin + " = {" + strings.Join(entries, ", ") + "}\n"
}

// exampleValue returns a value that fits a schema: one that the schema names, or else the smallest one of its type.
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
			return keys.Quote(v)
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

// plainNumber matches numbers that are written alike in JSON and TOML, and that every reader understands.
var plainNumber = regexp.MustCompile(`^-?\d{1,15}(\.\d{1,15})?$`)
