package schemas

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolsrv/toolsrv/internal/jsontree"
)

// A use says what the value of a keyword must be.
type use uint8

const (
	aText use = iota + 1
	aFlag
	aCount
	aNumber
	aPositive // number
	aType
	aReference
	aName    // a schema's name: a reference without a fragment
	anAnchor // of draft 2019-09
	aWord    // from 2020-12 on, an anchor
	flags    // by address
	aList
	aChoice   // a list of different values, at least one
	names     // different strings
	someNames // different strings, at least one
	namesOf   // by member
	aSchema
	schemaOrFlag
	schemaOrList
	someSchemas
	namedSchemas
	schemasOrNames // by member
)

// A rule is what the value of a keyword must be from one draft until another.
type rule struct {
	use          use
	since, until draft
}

// rules are the rules of the metaschemas of all drafts. They are a table, since a library's metaschemas take 3 ms of preparation in each process, and
// 120 µs for each schema.
var rules = map[string][]rule{
	"$schema":               {{aText, draft4, always}}, // findDraft knows which
	"id":                    {{aReference, draft4, draft6}},
	"$id":                   {{aReference, draft6, draft2019}, {aName, draft2019, always}},
	"$ref":                  {{aText, draft4, draft6}, {aReference, draft6, always}},
	"$anchor":               {{anAnchor, draft2019, draft2020}, {aWord, draft2020, always}},
	"$recursiveRef":         {{aReference, draft2019, always}},
	"$recursiveAnchor":      {{aFlag, draft2019, draft2020}, {aWord, draft2020, always}},
	"$dynamicRef":           {{aReference, draft2020, always}},
	"$dynamicAnchor":        {{aWord, draft2020, always}},
	"$vocabulary":           {{flags, draft2019, always}},
	"$comment":              {{aText, draft7, always}},
	"title":                 {{aText, draft4, always}},
	"description":           {{aText, draft4, always}},
	"format":                {{aText, draft4, always}},
	"pattern":               {{aText, draft4, always}}, // compiled later, with a better message
	"contentEncoding":       {{aText, draft7, always}},
	"contentMediaType":      {{aText, draft7, always}},
	"readOnly":              {{aFlag, draft7, always}},
	"writeOnly":             {{aFlag, draft7, always}},
	"deprecated":            {{aFlag, draft2019, always}},
	"uniqueItems":           {{aFlag, draft4, always}},
	"regexProperties":       {{aFlag, draft4, draft6}},
	"examples":              {{aList, draft7, always}},
	"enum":                  {{aChoice, draft4, draft2019}, {aList, draft2019, always}},
	"type":                  {{aType, draft4, always}},
	"multipleOf":            {{aPositive, draft4, always}},
	"minimum":               {{aNumber, draft4, always}},
	"maximum":               {{aNumber, draft4, always}},
	"exclusiveMinimum":      {{aFlag, draft4, draft6}, {aNumber, draft6, always}},
	"exclusiveMaximum":      {{aFlag, draft4, draft6}, {aNumber, draft6, always}},
	"minLength":             {{aCount, draft4, always}},
	"maxLength":             {{aCount, draft4, always}},
	"minItems":              {{aCount, draft4, always}},
	"maxItems":              {{aCount, draft4, always}},
	"minContains":           {{aCount, draft2019, always}},
	"maxContains":           {{aCount, draft2019, always}},
	"minProperties":         {{aCount, draft4, always}},
	"maxProperties":         {{aCount, draft4, always}},
	"required":              {{someNames, draft4, draft6}, {names, draft6, always}},
	"dependentRequired":     {{namesOf, draft2019, always}},
	"dependencies":          {{schemasOrNames, draft4, always}},
	"dependentSchemas":      {{namedSchemas, draft2019, always}},
	"definitions":           {{namedSchemas, draft4, always}},
	"$defs":                 {{namedSchemas, draft2019, always}},
	"properties":            {{namedSchemas, draft4, always}},
	"patternProperties":     {{namedSchemas, draft4, always}},
	"additionalProperties":  {{schemaOrFlag, draft4, always}},
	"unevaluatedProperties": {{aSchema, draft2019, always}},
	"propertyNames":         {{aSchema, draft6, always}},
	"items":                 {{schemaOrList, draft4, draft2020}, {aSchema, draft2020, always}},
	"prefixItems":           {{someSchemas, draft2020, always}},
	"additionalItems":       {{schemaOrFlag, draft4, draft2020}},
	"unevaluatedItems":      {{aSchema, draft2019, always}},
	"contains":              {{aSchema, draft6, always}},
	"contentSchema":         {{aSchema, draft2019, always}},
	"not":                   {{aSchema, draft4, always}},
	"allOf":                 {{someSchemas, draft4, always}},
	"anyOf":                 {{someSchemas, draft4, always}},
	"oneOf":                 {{someSchemas, draft4, always}},
	"if":                    {{aSchema, draft7, always}},
	"then":                  {{aSchema, draft7, always}},
	"else":                  {{aSchema, draft7, always}},
}

// wanted is the text of an error about what a value must be.
var wanted = [...]string{
	aText: "a string", aFlag: "true or false", aCount: "an integer of at least 0", aNumber: "a number", aPositive: "a number above 0",
	aType:      `one of "array", "boolean", "integer", "null", "number", "object" and "string", or a list of different ones`,
	aReference: "the address of a schema", aName: "an address without a fragment",
	anAnchor: "a letter, followed by letters, digits, '-', '.', ':' and '_'", aWord: "a letter or '_', followed by letters, digits, '-', '.' and '_'",
	flags: "an object whose names are addresses, with true or false for each", aList: "a list", aChoice: "a list of at least one value, all different",
	names: "a list of different strings", someNames: "a list of at least one string, all different", namesOf: "an object of lists of different strings",
	aSchema: "a schema", schemaOrFlag: "a schema, true or false", schemaOrList: "a schema, or a list of at least one", someSchemas: "a list of schemas, at least one",
	namedSchemas: "an object of schemas", schemasOrNames: "an object of schemas and lists of different strings",
}

// wrong returns the error for the value at i, which does not fit its use.
func (s *source) wrong(i int32, u use) error {
	return at(s.pointer(i), fmt.Errorf("the value must be %s: correct it as %s says", wanted[u], s.draft.uri()))
}

// checkMeta checks the schema at i, including nested schemas, against the metaschema of its draft.
func (s *source) checkMeta(i int32) error {
	v := &s.tree.Values[i]
	switch {
	case v.Kind == jsontree.Bool && s.draft > draft4:
		return nil
	case v.Kind != jsontree.Object:
		return s.wrong(i, aSchema)
	}
	for m := v.First; m != 0; m = s.tree.Values[m].Next {
		for _, r := range rules[s.tree.Values[m].Key] {
			if r.since <= s.draft && s.draft < r.until {
				if err := s.checkUse(m, r.use); err != nil {
					return err
				}
			}
		}
	}
	if s.draft == draft4 {
		for _, side := range [...]string{"Minimum", "Maximum"} {
			if m := s.member(i, "exclusive"+side); m != 0 && s.member(i, strings.ToLower(side)) == 0 {
				return at(s.pointer(m), fmt.Errorf("it refers to %q, which is missing: correct it as %s says", strings.ToLower(side), s.draft.uri()))
			}
		}
	}
	return nil
}

// checkUse checks the value of a keyword, including schemas in it.
func (s *source) checkUse(i int32, u use) error {
	v := &s.tree.Values[i]
	switch u {
	case aSchema:
		return s.checkMeta(i)
	case schemaOrFlag:
		if v.Kind == jsontree.Bool {
			return nil
		}
		return s.checkMeta(i)
	case schemaOrList, someSchemas:
		if v.Kind != jsontree.Array && u == schemaOrList {
			return s.checkMeta(i)
		}
		if v.Kind != jsontree.Array || v.Count == 0 {
			return s.wrong(i, u)
		}
		return s.checkEach(i, func(int32) use { return aSchema })
	case namedSchemas, schemasOrNames, namesOf:
		if v.Kind != jsontree.Object {
			return s.wrong(i, u)
		}
		return s.checkEach(i, func(c int32) use {
			switch {
			case u == namedSchemas, u == schemasOrNames && s.tree.Values[c].Kind != jsontree.Array:
				return aSchema
			case s.draft == draft4:
				return someNames
			}
			return names
		})
	}
	if !s.isUse(i, u) {
		return s.wrong(i, u)
	}
	return nil
}

// checkEach checks the items or members of the value at i against a use.
func (s *source) checkEach(i int32, each func(c int32) use) error {
	for c := s.tree.Values[i].First; c != 0; c = s.tree.Values[c].Next {
		if err := s.checkUse(c, each(c)); err != nil {
			return err
		}
	}
	return nil
}

// isUse reports whether the value at i, which contains no schemas, fits a use.
func (s *source) isUse(i int32, u use) bool {
	v := &s.tree.Values[i]
	switch u {
	case aText:
		return v.Kind == jsontree.String
	case aFlag:
		return v.Kind == jsontree.Bool
	case aNumber:
		return v.Kind == jsontree.Number
	case aList:
		return v.Kind == jsontree.Array
	case aCount, aPositive:
		if v.Kind != jsontree.Number {
			return false
		}
		d, zero := jsontree.ParseDecimal(v.Text), jsontree.ParseDecimal("0")
		if u == aPositive {
			return d.Compare(&zero) > 0
		}
		return d.Compare(&zero) >= 0 && d.IsInteger()
	case aType:
		return s.isTypeName(i) || v.Kind == jsontree.Array && v.Count > 0 && s.areAll(i, s.isTypeName) && s.areDifferent(i)
	case aReference, aName:
		if v.Kind != jsontree.String {
			return false
		}
		address := v.Decoded()
		hash := strings.IndexByte(address, '#')
		return isURIReference(address) && (u == aReference || hash < 0 || hash == len(address)-1)
	case anAnchor:
		return v.Kind == jsontree.String && isAnchor(v.Decoded(), letters, letters+digits+"-.:_")
	case aWord:
		return v.Kind == jsontree.String && isAnchor(v.Decoded(), letters+"_", letters+digits+"-._")
	case flags:
		return v.Kind == jsontree.Object && s.areAll(i, func(c int32) bool { return s.tree.Values[c].Kind == jsontree.Bool && isURI(s.tree.Values[c].Key) })
	case aChoice:
		return v.Kind == jsontree.Array && v.Count > 0 && s.areDifferent(i)
	case names, someNames:
		return v.Kind == jsontree.Array && (v.Count > 0 || u == names) && s.areAll(i, func(c int32) bool { return s.tree.Values[c].Kind == jsontree.String }) && s.areDifferent(i)
	}
	panic("schema: a use without a rule")
}

// These are the characters of anchors.
const (
	letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
	digits  = "0123456789"
)

func isAnchor(name, first, rest string) bool {
	return name != "" && strings.IndexByte(first, name[0]) >= 0 && strings.Trim(name[1:], rest) == ""
}

// areAll reports whether all items or members of the value at i are good.
func (s *source) areAll(i int32, good func(c int32) bool) bool {
	for c := s.tree.Values[i].First; c != 0; c = s.tree.Values[c].Next {
		if !good(c) {
			return false
		}
	}
	return true
}

// areDifferent reports whether no two items of the list at i are equal.
func (s *source) areDifferent(i int32) bool {
	list := make([]string, 0, s.tree.Values[i].Count)
	for c := s.tree.Values[i].First; c != 0; c = s.tree.Values[c].Next {
		list = append(list, s.tree.Canonical(c))
	}
	slices.Sort(list)
	return len(slices.Compact(list)) == int(s.tree.Values[i].Count)
}

func (s *source) isTypeName(i int32) bool {
	switch s.str(i) {
	case "null", "boolean", "object", "array", "number", "string", "integer":
		return true
	}
	return false
}
