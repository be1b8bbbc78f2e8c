package modelapi

import (
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/toolsrv/toolsrv/internal/text"
)

// The members of a schema that contain one schema, a list of schemas, or an object of schemas. The values of all other members, such as enum, are
// data.
var (
	holdOne   = []string{"additionalProperties", "contains", "contentSchema", "else", "if", "items", "not", "propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"}
	holdList  = []string{"allOf", "anyOf", "items", "oneOf", "prefixItems"}
	holdNamed = []string{"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"}
)

// parameters checks the schema of the arguments.
func (j *judge) parameters(value any) {
	top, ok := value.(map[string]any)
	if !ok || top["type"] != "object" {
		j.add(everywhere, ruleRoot, `the top level lacks "type": "object": add it`)
	}
	if !ok {
		return
	}
	for _, keyword := range []string{"allOf", "anyOf", "oneOf"} {
		if _, ok := top[keyword]; ok {
			j.add(append(slices.Clone(openAI), anthropic...), ruleRoot, "%s is not accepted at the top level: write the members there", keyword)
		}
	}
	for _, keyword := range []string{"enum", "not"} {
		if _, ok := top[keyword]; ok {
			j.add(openAI, ruleRoot, "%s is not accepted at the top level: move it into the members", keyword)
		}
	}
	arguments, _ := top["properties"].(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(arguments)) {
		j.at("properties", func() { j.at(name, func() { j.argument(name) }) })
	}
	j.schema(top, "#", 0)
	j.finish()
}

// argument checks the name of an argument.
func (j *judge) argument(name string) {
	switch {
	case len(name) > maxName || !argumentName.MatchString(name):
		j.add(append(slices.Clone(anthropic), Gemini), ruleName, "%q is not 1 to 64 of the characters A-Z a-z 0-9 _: rename it", text.Short(name))
	case !identifier.MatchString(name):
		j.add(gemini, ruleName, "%q does not begin with a letter or _, or has characters other than A-Z a-z 0-9 _: rename it", text.Short(name))
	}
}

// schema checks a schema. definition is the member of $defs that contains it, and depth is how many objects enclose it.
func (j *judge) schema(value any, definition string, depth int) {
	s, ok := value.(map[string]any)
	if !ok {
		j.add(strict, ruleStrict, "it doesn't give the type of the value: add \"type\"")
		return
	}
	j.array(s)
	j.reference(s, definition)
	j.strict(s, depth)
	if _, ok := s["properties"]; ok {
		depth++
	}
	for _, keyword := range slices.Sorted(maps.Keys(s)) {
		switch v := s[keyword].(type) {
		case []any:
			if !slices.Contains(holdList, keyword) {
				continue
			}
			for i, item := range v {
				j.at(keyword, func() { j.at(strconv.Itoa(i), func() { j.schema(item, definition, depth) }) })
			}
		case map[string]any:
			switch {
			case slices.Contains(holdNamed, keyword):
				for _, name := range slices.Sorted(maps.Keys(v)) {
					within := definition
					if keyword == "$defs" || keyword == "definitions" {
						within = "#/" + keyword + "/" + name
					}
					j.at(keyword, func() { j.at(name, func() { j.schema(v[name], within, depth) }) })
				}
			case slices.Contains(holdOne, keyword):
				j.at(keyword, func() { j.schema(v, definition, depth) })
			}
		}
	}
}

// array checks that an array has a schema for its elements.
func (j *judge) array(s map[string]any) {
	if !slices.Contains(types(s), "array") {
		return
	}
	if _, ok := s["items"].(map[string]any); !ok {
		j.add(openAI, ruleItems, `an array without a schema for its elements: add "items", such as {"type": "string"}`)
	}
}

// types returns the types that a schema names.
func types(s map[string]any) []string {
	switch t := s["type"].(type) {
	case string:
		return []string{t}
	case []any:
		var all []string
		for _, name := range t {
			if name, ok := name.(string); ok {
				all = append(all, name)
			}
		}
		return all
	}
	return nil
}

// reference checks a reference, and records where it leads.
func (j *judge) reference(s map[string]any, definition string) {
	to, ok := s["$ref"].(string)
	if !ok {
		return
	}
	if parts := strings.SplitN(to, "/", 4); len(parts) > 3 {
		to = strings.Join(parts[:3], "/") // a reference to a part of a definition counts as a reference to all of it
	}
	j.refs.add(definition, to)
	for _, keyword := range slices.Sorted(maps.Keys(s)) {
		switch keyword {
		case "$ref", "$defs", "definitions":
			continue
		case "description", "default":
			j.add([]API{OpenAIStrict}, ruleSibling, "%s beside $ref is not accepted: move it into the referenced schema", keyword)
		default:
			j.add([]API{OpenAIStrict, Gemini}, ruleSibling, "%q beside $ref is not accepted: move it into the referenced schema", text.Short(keyword))
		}
		return
	}
}

// references has, for each definition, the definitions that it refers to; "#" is the root.
type references map[string][]string

func (r *references) add(from, to string) {
	if *r == nil {
		*r = references{}
	}
	if !slices.Contains((*r)[from], to) {
		(*r)[from] = append((*r)[from], to)
	}
}

// cycle reports whether some definition leads back to itself.
func (r references) cycle() bool {
	state := map[string]int{} // 1: being visited, 2: known to lead to no cycle
	var visit func(string) bool
	visit = func(name string) bool {
		if state[name] != 0 {
			return state[name] == 1
		}
		state[name] = 1
		if slices.ContainsFunc(r[name], visit) {
			return true
		}
		state[name] = 2
		return false
	}
	return slices.ContainsFunc(slices.Collect(maps.Keys(r)), visit)
}
