package modelapi

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/toolsrv/toolsrv/internal/text"
)

// The keywords, and the formats of strings, that the strict APIs document.
var (
	keywords = map[API][]string{
		OpenAIStrict: {"$defs", "$ref", "$schema", "additionalProperties", "anyOf", "const", "definitions", "description", "enum", "exclusiveMaximum", "exclusiveMinimum",
			"format", "items", "maxItems", "maximum", "minItems", "minimum", "multipleOf", "pattern", "properties", "required", "title", "type"},
		AnthropicStrict: {"$defs", "$ref", "$schema", "additionalProperties", "allOf", "anyOf", "const", "default", "definitions", "description", "enum",
			"format", "items", "minItems", "pattern", "properties", "required", "title", "type"},
	}
	formats = map[API][]string{
		OpenAIStrict:    {"date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uuid"},
		AnthropicStrict: {"date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uri", "uuid"},
	}
)

// The bounds of a tool in strict mode.
const (
	openAIProperties = 5000
	openAIDepth      = 10
	openAIValues     = 1000    // values of all enums together
	openAIText       = 120_000 // characters of all names and values together
	openAILongEnum   = 250     // an enum with more values than this has a limit on their characters
	openAIEnumText   = 15_000  // the most characters of the values of such an enum together

	anthropicOptional = 24 // arguments that are not required
	anthropicUnions   = 16 // arguments of several types
)

// size counts what strict mode limits.
type size struct {
	properties, depth, values, text int
	optional, unions                int
}

// beyondGrammar matches what Anthropic does not accept in a pattern: word boundaries, look-around and back-references.
var beyondGrammar = regexp.MustCompile(`\\[bB1-9]|\(\?[=!<]`)

// strict checks a schema by the rules that only the strict APIs have.
func (j *judge) strict(s map[string]any, depth int) {
	j.keywords(s)
	j.count(s, depth)
	properties, _ := s["properties"].(map[string]any)
	if properties != nil || slices.Contains(types(s), "object") {
		if s["additionalProperties"] != false {
			j.add(strict, ruleStrict, `an object must have "additionalProperties": false: add it`)
		}
		if missing := optional(s, properties); len(missing) > 0 {
			j.add([]API{OpenAIStrict}, ruleStrict, `every member must be in "required", but %q is not: add it, with "null" among its types`, text.Short(missing[0]))
		}
	}
	if !slices.ContainsFunc([]string{"type", "anyOf", "allOf", "oneOf", "enum", "const", "$ref"}, func(keyword string) bool { _, ok := s[keyword]; return ok }) {
		j.add(strict, ruleStrict, "it doesn't give the type of the value: add \"type\"")
	}
}

// optional returns the members of an object that are not required.
func optional(s, properties map[string]any) []string {
	required, _ := s["required"].([]any)
	return slices.DeleteFunc(slices.Sorted(maps.Keys(properties)), func(name string) bool { return slices.Contains(required, any(name)) })
}

// keywords checks the keywords of a schema, and some of their values.
func (j *judge) keywords(s map[string]any) {
	for _, api := range strict {
		unknown := slices.DeleteFunc(slices.Sorted(maps.Keys(s)), func(name string) bool {
			return slices.Contains(keywords[api], name)
		})
		for i, name := range unknown {
			unknown[i] = text.Short(name)
		}
		if len(unknown) > 0 {
			j.add([]API{api}, ruleStrict, "it doesn't document the keyword %s: put this into the description instead", strings.Join(unknown[:min(len(unknown), 5)], ", "))
		}
		if format, ok := s["format"].(string); ok && !slices.Contains(formats[api], format) {
			j.add([]API{api}, ruleStrict, "it doesn't document the format %q: put this into the description instead", text.Short(format))
		}
	}
	if n, ok := s["minItems"].(float64); ok && n > 1 {
		j.add([]API{AnthropicStrict}, ruleStrict, "minItems can only be 0 or 1: say more in the description instead")
	}
	if pattern, ok := s["pattern"].(string); ok && beyondGrammar.MatchString(pattern) {
		j.add([]API{AnthropicStrict}, ruleStrict, "a pattern can't use look-around, back-references or word boundaries: write a simpler one")
	}
	values, _ := s["enum"].([]any)
	if slices.ContainsFunc(values, isComposite) {
		j.add([]API{AnthropicStrict}, ruleStrict, "the values of an enum can be neither arrays nor objects: use anyOf")
	}
}

func isComposite(value any) bool {
	switch value.(type) {
	case []any, map[string]any:
		return true
	}
	return false
}

// count adds a schema to the size of the tool.
func (j *judge) count(s map[string]any, depth int) {
	properties, _ := s["properties"].(map[string]any)
	if properties != nil {
		j.size.depth = max(j.size.depth, depth+1)
	}
	j.size.properties += len(properties)
	j.size.optional += len(optional(s, properties))
	if _, several := s["anyOf"]; several || len(types(s)) > 1 {
		j.size.unions++
	}
	for _, keyword := range holdNamed {
		named, _ := s[keyword].(map[string]any)
		for name := range named {
			j.size.text += utf8.RuneCountInString(name)
		}
	}
	if value, ok := s["const"].(string); ok {
		j.size.text += utf8.RuneCountInString(value)
	}
	values, _ := s["enum"].([]any)
	j.size.values += len(values)
	inEnum := 0
	for _, value := range values {
		if value, ok := value.(string); ok {
			inEnum += utf8.RuneCountInString(value)
		}
	}
	j.size.text += inEnum
	if len(values) > openAILongEnum && inEnum > openAIEnumText {
		j.add([]API{OpenAIStrict}, ruleStrict, "the enum has %d values with %d characters together; with more than %d values, %d characters are accepted", len(values), inEnum, openAILongEnum, openAIEnumText)
	}
}

// finish checks what is only known after the whole schema has been read.
func (j *judge) finish() {
	if j.refs.cycle() {
		j.add([]API{AnthropicStrict}, ruleStrict, "a schema can't refer to itself: write out as many levels as you need")
	}
	for _, bound := range []struct {
		api       API
		has, most int
		what      string
	}{
		{OpenAIStrict, j.size.properties, openAIProperties, "members"},
		{OpenAIStrict, j.size.depth, openAIDepth, "levels of objects"},
		{OpenAIStrict, j.size.values, openAIValues, "values of enums"},
		{OpenAIStrict, j.size.text, openAIText, "characters of names and values"},
		{AnthropicStrict, j.size.optional, anthropicOptional, "members that are not required"},
		{AnthropicStrict, j.size.unions, anthropicUnions, "members of several types"},
	} {
		if bound.has > bound.most {
			j.add([]API{bound.api}, ruleStrict, "it has %d %s, %d are accepted: split the tool", bound.has, bound.what, bound.most)
		}
	}
}
