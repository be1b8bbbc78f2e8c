package toolfile

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"mime"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/toolsrv/toolsrv/internal/manifest"
	"github.com/toolsrv/toolsrv/internal/text"
)

// A Finding is something that a server accepts, but that some clients refuse or misunderstand.
type Finding struct {
	// Rule is the stable name of the rule.
	Rule string `json:"rule"`
	// Tool is the tool's name.
	Tool string `json:"tool"`
	// Place is the path from the tool's declaration to the finding, such as "parameters/properties/a"; long names are
	// shortened.
	Place string `json:"place"`
	// Message says what is wrong and what to do.
	Message string `json:"message"`
}

// The rules.
const (
	ruleDynamic = "dynamic-ref" // $dynamicRef or $recursiveRef
	ruleSibling = "ref-sibling" // $ref beside other members
	rulePointer = "ref-pointer" // $ref that is not a JSON pointer
	ruleRoot    = "root-object" // arguments whose members are not at the top
	ruleName    = "name"        // names that clients refuse
	ruleKeyword = "keyword"     // misspelt keywords
	ruleFormat  = "format"      // misspelt formats
	ruleMedia   = "media"       // contents of strings that no client understands
	ruleExample = "example"     // examples that don't fit the schemas
)

// maxFindings is how many findings are returned for a manifest. An author corrects the first ones first.
const maxFindings = 100

// Lint looks for what may cause trouble for clients of the module's tools: what the function Lint finds in the manifest, and examples that do not fit
// the schemas. It returns at most 100 findings. The module must have been described.
func (m *Module) Lint() []Finding {
	all := Lint(m.manifest)
	for i, t := range m.manifest.Tools {
		for n, e := range t.Examples {
			l := linter{tool: t.Name, path: []string{"examples", strconv.Itoa(n)}}
			if _, err := m.schemas[i].parameters.Validate(e.Arguments); err != nil {
				l.at("arguments", func() {
					l.add(ruleExample, "an agent that copies it is refused%s: correct the example or the schema", text.Clip(violationsOf(err), 200))
				})
			}
			if s := m.schemas[i].result; s != nil && e.Result != nil {
				if err := s.Check(e.Result); err != nil {
					l.at("result", func() {
						l.add(ruleExample, "it does not fit the schema of the result%s: correct the example or the schema", text.Clip(violationsOf(err), 200))
					})
				}
			}
			all = append(all, l.findings...)
			if len(all) >= maxFindings {
				return all[:maxFindings]
			}
		}
	}
	return all
}

// Lint looks for what may cause trouble for clients of a manifest's tools. It returns at most 100 findings, in the order of the manifest.
func Lint(m *manifest.Manifest) []Finding {
	var all []Finding
	for _, t := range m.Tools {
		l := linter{tool: t.Name}
		l.at("parameters", func() {
			l.root(t.Parameters)
			l.text(t.Parameters)
		})
		if t.Result != nil {
			l.at("result", func() { l.text(t.Result) })
		}
		all = append(all, l.findings...)
		if len(all) > maxFindings {
			return all[:maxFindings]
		}
	}
	return all
}

// A linter lints one tool.
type linter struct {
	tool     string
	path     []string // the path to the current place; joined only for findings, since a hostile path is long
	findings []Finding
}

func (l *linter) add(rule, format string, args ...any) {
	if len(l.findings) > maxFindings {
		return
	}
	tokens := make([]string, len(l.path))
	for i, token := range l.path {
		tokens[i] = strings.NewReplacer("~", "~0", "/", "~1").Replace(text.Short(token))
	}
	l.findings = append(l.findings, Finding{rule, l.tool, strings.Join(tokens, "/"), fmt.Sprintf(format, args...)})
}

// at calls f one step deeper.
func (l *linter) at(token string, f func()) {
	l.path = append(l.path, token)
	f()
	l.path = l.path[:len(l.path)-1]
}

// root lints the top of the schema of the arguments. Clients show its members, and forms and agents fill them in.
func (l *linter) root(parameters json.RawMessage) {
	var top map[string]json.RawMessage
	if json.Unmarshal(parameters, &top) != nil {
		return // text reports it
	}
	if string(top["type"]) != `"object"` {
		l.add(ruleRoot, `the top level lacks "type": "object", which some clients look for: add it`)
	}
	for _, keyword := range []string{"$ref", "allOf", "anyOf", "oneOf"} {
		if _, ok := top[keyword]; ok {
			l.add(ruleRoot, "clients that read only \"properties\" and \"required\" at the top level miss %s: write the members there", keyword)
		}
	}
}

// text lints the text of a schema. ParseManifest has bounded its size and depth.
func (l *linter) text(text json.RawMessage) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		l.add(ruleRoot, "this is not valid JSON: %v", err)
		return
	}
	l.schema(value)
}

// These members of a schema hold schemas. The values of all others, such as enum, are data.
var (
	holdSchemas = map[string]bool{"items": true, "additionalItems": true, "contains": true, "additionalProperties": true,
		"propertyNames": true, "if": true, "then": true, "else": true, "not": true, "allOf": true, "anyOf": true, "oneOf": true,
		"prefixItems": true, "unevaluatedItems": true, "unevaluatedProperties": true, "contentSchema": true}
	holdNamed = map[string]bool{"properties": true, "patternProperties": true, "dependentSchemas": true, "dependencies": true,
		"$defs": true, "definitions": true}
)

// schema lints a schema, or a list of them.
func (l *linter) schema(value any) {
	switch v := value.(type) {
	case []any:
		for i, item := range v {
			l.at(strconv.Itoa(i), func() { l.schema(item) })
		}
	case map[string]any:
		l.references(v)
		l.typos(v)
		l.media(v)
		for _, name := range slices.Sorted(maps.Keys(v)) {
			named, isObject := v[name].(map[string]any)
			switch {
			case holdNamed[name] && isObject:
				l.at(name, func() { l.named(named, name == "properties") })
			case holdSchemas[name]:
				l.at(name, func() { l.schema(v[name]) })
			}
		}
	}
}

// propertyName matches the names of arguments that the APIs of language models accept.
var propertyName = regexp.MustCompile(`^[A-Za-z0-9_.-]+$`)

// named lints the schemas in an object of named schemas.
func (l *linter) named(schemas map[string]any, properties bool) {
	for _, name := range slices.Sorted(maps.Keys(schemas)) {
		l.at(name, func() {
			if properties && (len(name) > 64 || !propertyName.MatchString(name)) {
				l.add(ruleName, "language models accept only names of 1 to 64 of the characters A-Z a-z 0-9 _ . -: rename %q", text.Short(name))
			}
			l.schema(schemas[name])
		})
	}
}

// media lints what a schema says about the contents of a string.
func (l *linter) media(schema map[string]any) {
	encoding, encoded := schema["contentEncoding"].(string)
	if encoded && encoding != "base64" {
		l.add(ruleMedia, "only the contentEncoding base64 is checked, and decoded by clients: use it instead of %q", text.Short(encoding))
	}
	given, ok := schema["contentMediaType"].(string)
	if !ok {
		return
	}
	kind, _, err := mime.ParseMediaType(given)
	main, _, whole := strings.Cut(kind, "/")
	switch {
	case err != nil || !whole:
		l.add(ruleMedia, "%q is not a media type, so clients do not know what to do with it: write it like \"image/png\"", text.Short(given))
	case !encoded && !strings.HasSuffix(kind, "+xml") && (main == "image" || main == "audio" || main == "video"):
		l.add(ruleMedia, "clients show no %s without its encoding: add \"contentEncoding\": \"base64\"", main)
	}
}

// references lints references to other schemas.
func (l *linter) references(schema map[string]any) {
	for _, name := range []string{"$dynamicRef", "$recursiveRef"} {
		if _, ok := schema[name]; ok {
			l.add(ruleDynamic, "many clients do not know %s: use $ref", name)
		}
	}
	to, ok := schema["$ref"].(string)
	if !ok {
		return
	}
	if to != "#" && !strings.HasPrefix(to, "#/") {
		l.add(rulePointer, "$ref %q is not a JSON pointer, and clients follow nothing else: write it like \"#/$defs/name\"", text.Short(to))
	}
	if len(schema) > 1 {
		others := slices.DeleteFunc(slices.Sorted(maps.Keys(schema)), func(name string) bool { return name == "$ref" })
		l.add(ruleSibling, `some clients refuse or ignore other members beside $ref (here %q): move them into the referenced schema, or write {"allOf": [{"$ref": …}], …}`, text.Short(others[0]))
	}
}
