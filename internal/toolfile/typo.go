package toolfile

import (
	"maps"
	"slices"
	"strings"

	"github.com/toolsrv/toolsrv/internal/text"
)

// keywords are the keywords of JSON Schema in its drafts from 4 on, and of OpenAPI. Any other keyword is treated as the author's own and ignored. So
// a misspelt keyword has no effect.
var keywords = strings.Fields(`$anchor $comment $defs $dynamicAnchor $dynamicRef $id $recursiveAnchor $recursiveRef $ref
	$schema $vocabulary additionalItems additionalProperties allOf anyOf const contains contentEncoding contentMediaType
	contentSchema default definitions dependencies dependentRequired dependentSchemas deprecated description discriminator
	else enum example examples exclusiveMaximum exclusiveMinimum externalDocs format id if items maxContains maxItems
	maxLength maxProperties maximum minContains minItems minLength minProperties minimum multipleOf not nullable oneOf
	pattern patternProperties prefixItems properties propertyNames readOnly required then title type unevaluatedItems
	unevaluatedProperties uniqueItems writeOnly xml`)

// formats are the formats that a server checks. Any other format is only for readers.
var formats = strings.Fields(`date date-time duration email hostname ipv4 ipv6 iri iri-reference json-pointer regex
	relative-json-pointer time uri uri-reference uri-template uuid`)

// typos looks for misspelt keywords and formats in a schema.
func (l *linter) typos(schema map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(schema)) {
		if meant := meant(name, keywords); meant != "" {
			l.add(ruleKeyword, "%q is not a keyword of JSON Schema and is ignored: did you mean %q?", name, meant)
		}
	}
	if name, ok := schema["format"].(string); ok {
		if meant := meant(name, formats); meant != "" {
			l.add(ruleFormat, "the format %q is not checked: did you mean %q?", name, meant)
		}
	}
}

// meant returns the known name that a misspelt one probably stands for, or "". Only one letter may be wrong: with more differences, it may be an
// author's own name. Short names are similar to too many others.
func meant(name string, known []string) string {
	if slices.Contains(known, name) {
		return ""
	}
	return text.Reach{Letters: 1, Share: 1, Shortest: 4, Longest: 30, Joined: true}.Nearest(name, known)
}
