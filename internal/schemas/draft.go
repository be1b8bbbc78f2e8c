package schemas

import (
	"fmt"
	"strings"
)

// A draft is an edition of JSON Schema. Later ones are greater.
type draft int

const (
	draft4    draft = 4
	draft6    draft = 6
	draft7    draft = 7
	draft2019 draft = 2019
	draft2020 draft = 2020
	always    draft = 9999
)

// uri returns the address of the draft's metaschema.
func (d draft) uri() string {
	switch d {
	case draft2020:
		return "https://json-schema.org/draft/2020-12/schema"
	case draft2019:
		return "https://json-schema.org/draft/2019-09/schema"
	}
	return fmt.Sprintf("https://json-schema.org/draft-%02d/schema", int(d))
}

// findDraft returns the draft that a "$schema" names.
func findDraft(uri string) (draft, error) {
	name := strings.TrimSuffix(strings.TrimPrefix(strings.TrimPrefix(uri, "https:"), "http:"), "#")
	if name == "//json-schema.org/schema" {
		return draft2020, nil
	}
	for _, d := range []draft{draft4, draft6, draft7, draft2019, draft2020} {
		if "https:"+name == d.uri() {
			return d, nil
		}
	}
	return 0, fmt.Errorf("$schema %s is unknown, and nothing is fetched: use %q, or an address of draft 4, 6, 7 or 2019-09", quoted(uri), draft2020.uri())
}

// holds says how a keyword's value holds schemas.
type holds uint8

const (
	values  holds = 0         // none
	one     holds = 1 << iota // the value is a schema
	list                      // the items of the value are schemas
	members                   // the members of the value are schemas
)

// A keyword is a keyword that differs between drafts, or that holds schemas.
type keyword struct {
	holds holds
	since draft // the first draft that knows the keyword
	until draft // the first draft that no longer knows the keyword
}

// keywords are the keywords that hold schemas, and those unknown to some draft. A draft ignores keywords that it doesn't know.
var keywords = map[string]keyword{
	"definitions":           {members, draft4, always},
	"$defs":                 {members, draft2019, always},
	"not":                   {one, draft4, always},
	"allOf":                 {list, draft4, always},
	"anyOf":                 {list, draft4, always},
	"oneOf":                 {list, draft4, always},
	"if":                    {one, draft7, always},
	"then":                  {one, draft7, always},
	"else":                  {one, draft7, always},
	"properties":            {members, draft4, always},
	"patternProperties":     {members, draft4, always},
	"additionalProperties":  {one, draft4, always},
	"propertyNames":         {one, draft6, always},
	"dependencies":          {members, draft4, always},
	"dependentSchemas":      {members, draft2019, always},
	"dependentRequired":     {values, draft2019, always},
	"unevaluatedProperties": {one, draft2019, always},
	"items":                 {one | list, draft4, always},
	"additionalItems":       {one, draft4, draft2020},
	"prefixItems":           {list, draft2020, always},
	"contains":              {one, draft6, always},
	"minContains":           {values, draft2019, always},
	"maxContains":           {values, draft2019, always},
	"unevaluatedItems":      {one, draft2019, always},
	"contentSchema":         {one, draft2019, always},
	"contentEncoding":       {values, draft7, always},
	"contentMediaType":      {values, draft7, always},
	"const":                 {values, draft6, always},
	"$anchor":               {values, draft2019, always},
	"$recursiveRef":         {values, draft2019, always},
	"$recursiveAnchor":      {values, draft2019, always},
	"$dynamicRef":           {values, draft2020, always},
	"$dynamicAnchor":        {values, draft2020, always},
}

// known reports whether the keyword has a meaning in the draft, or may have one: an author's own keyword counts as known.
func (d draft) known(word string) bool {
	k, ok := keywords[word]
	return !ok || k.since <= d && d < k.until
}

// subschemas says how the value of a keyword holds schemas in the draft.
func (d draft) subschemas(word string) holds {
	if k, ok := keywords[word]; ok && d.known(word) {
		if word == "items" && d >= draft2020 {
			return one
		}
		return k.holds
	}
	return values
}

// id is the keyword that names a schema.
func (d draft) id() string {
	if d == draft4 {
		return "id"
	}
	return "$id"
}
