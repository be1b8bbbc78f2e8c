package toolfile

import (
	"maps"
	"slices"
	"strings"

	"github.com/toolsrv/toolsrv/internal/text"
)

// The keywords that JSON Schema has in its drafts from 4 on, and OpenAPI beside. Any other counts as an author's own remark
// and is ignored, as is a keyword that is misspelt: its bound holds for nobody.
var keywords = strings.Fields(`$anchor $comment $defs $dynamicAnchor $dynamicRef $id $recursiveAnchor $recursiveRef $ref
	$schema $vocabulary additionalItems additionalProperties allOf anyOf const contains contentEncoding contentMediaType
	contentSchema default definitions dependencies dependentRequired dependentSchemas deprecated description discriminator
	else enum example examples exclusiveMaximum exclusiveMinimum externalDocs format id if items maxContains maxItems
	maxLength maxProperties maximum minContains minItems minLength minProperties minimum multipleOf not nullable oneOf
	pattern patternProperties prefixItems properties propertyNames readOnly required then title type unevaluatedItems
	unevaluatedProperties uniqueItems writeOnly xml`)

// The formats that a server checks. Any other tells readers something and is not checked.
var formats = strings.Fields(`date date-time duration email hostname ipv4 ipv6 iri iri-reference json-pointer regex
	relative-json-pointer time uri uri-reference uri-template uuid`)

// slips looks for keywords and formats of a schema that are one slip away from another.
func (l *linter) slips(schema map[string]any) {
	for _, name := range slices.Sorted(maps.Keys(schema)) {
		if meant := meant(name, keywords); meant != "" {
			l.add(ruleKeyword, "%q is no keyword of JSON Schema and is ignored: did you mean %q?", name, meant)
		}
	}
	if name, ok := schema["format"].(string); ok {
		if meant := meant(name, formats); meant != "" {
			l.add(ruleFormat, "the format %q is not checked: did you mean %q?", name, meant)
		}
	}
}

// meant returns which of known a name was meant to be that is none of them, or "" where it is none or far from all. One
// letter may be wrong: other keywords are an author's own. Shorter names are near to too many.
func meant(name string, known []string) string {
	if slices.Contains(known, name) {
		return ""
	}
	return text.Reach{Letters: 1, Share: 1, Shortest: 4, Longest: 30, Joined: true}.Nearest(name, known)
}
