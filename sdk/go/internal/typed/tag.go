package typed

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
)

// A tagKey is a tag that this package reads.
type tagKey struct {
	key   string
	kinds string // the kinds of JSON values that the tag is for, separated by commas; empty for all
}

func tagKeys() []tagKey {
	return []tagKey{
		{"description", ""}, {"required", ""}, {"default", ""}, {"examples", ""}, {"enum", "number,integer,string,boolean"},
		{"minimum", "number,integer"}, {"maximum", "number,integer"},
		{"exclusiveMinimum", "number,integer"}, {"exclusiveMaximum", "number,integer"},
		{"minLength", "string"}, {"maxLength", "string"}, {"pattern", "string"}, {"format", "string"},
		{"contentEncoding", "string"}, {"contentMediaType", "string"},
		{"minItems", "array"}, {"maxItems", "array"},
	}
}

// tags are the tags of a field that this package reads.
type tags map[string]string

// readTags returns the tags of a field that this package reads.
func readTags(tag reflect.StructTag) (tags, error) {
	out := tags{}
	for _, k := range tagKeys() {
		value, ok := tag.Lookup(k.key)
		if !ok {
			continue
		}
		if value == "" && k.key != "default" {
			return nil, fmt.Errorf("the tag %s is empty: fill it in or remove it", k.key)
		}
		out[k.key] = value
	}
	return out, nil
}

// ownKey returns a key of tag that is meant for JSON, or "" if there is none.
func ownKey(tag reflect.StructTag) string {
	if _, ok := tag.Lookup("json"); ok {
		return "json"
	}
	for _, k := range tagKeys() {
		if _, ok := tag.Lookup(k.key); ok {
			return k.key
		}
	}
	return ""
}

// checkTag reports whether a tag is in the form that package reflect reads: reflect ignores everything after a mistake.
func checkTag(tag reflect.StructTag) error {
	rest := strings.TrimLeft(string(tag), " ")
	for parted := true; rest != ""; {
		colon := strings.Index(rest, `:"`)
		if !parted || colon <= 0 || strings.ContainsAny(rest[:colon], " \"") {
			return fmt.Errorf("its tag is broken at %s: write key:\"value\", with one space between two", rest)
		}
		if key := rest[:colon]; meant(key) != "" {
			return fmt.Errorf("its tag %q is not known: did you mean %q?", key, meant(key))
		}
		quoted, err := strconv.QuotedPrefix(rest[colon+1:])
		if err != nil {
			return fmt.Errorf("its tag is broken at %s: the value is not a Go string (a backslash is written twice)", rest)
		}
		behind := rest[colon+1+len(quoted):]
		rest = strings.TrimLeft(behind, " ")
		parted = rest != behind // a comma would count as part of the next key, which nobody reads
	}
	return nil
}

// meant returns the key that an unknown one was meant to be, or "". Tags of other packages are in the same place, so only small differences count:
// capitals, and one letter, or two in ten. The tag json is never suggested, since bson is another package's tag.
func meant(key string) string {
	best, least := "", 1+max(1, min(len(key)/5, 2))
	for _, k := range tagKeys() {
		if key == k.key {
			return ""
		}
		if n := distance(strings.ToLower(key), strings.ToLower(k.key)); n < least {
			best, least = k.key, n
		}
	}
	return best
}

// distance returns how many bytes must be inserted, removed, replaced or swapped with the next one to turn a into b.
func distance(a, b string) int {
	before, last, row := make([]int, len(b)+1), make([]int, len(b)+1), make([]int, len(b)+1)
	for j := range row {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row[0] = i
		for j := 1; j <= len(b); j++ {
			change := 1
			if a[i-1] == b[j-1] {
				change = 0
			}
			row[j] = min(last[j]+1, row[j-1]+1, last[j-1]+change)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last, row = last, row, before
	}
	return last[len(b)]
}

// any reports whether a tag adds a member to the schema.
func (t tags) any() bool {
	_, required := t["required"]
	return len(t) > 1 || len(t) == 1 && !required
}

// kindOf returns the JSON type of the values of a schema made from t, or "" if any type is possible.
func kindOf(s *schema, t reflect.Type) string {
	if kind, ok := s.Type.(string); ok {
		return kind
	}
	if len(s.AllOf) != 1 || s.AllOf[0].raw != nil {
		return ""
	}
	switch t.Kind() {
	case reflect.Struct, reflect.Map:
		return "object"
	case reflect.Slice, reflect.Array:
		return "array"
	}
	return ""
}

// constrain adds to s what the tags say of values that are not null.
func (t tags) constrain(s *schema, kind string, typ reflect.Type) error {
	for _, k := range tagKeys() {
		if _, ok := t[k.key]; ok && k.kinds != "" && kind != "" && !contains(strings.Split(k.kinds, ","), kind) {
			return fmt.Errorf("the tag %s is for a JSON %s, and this is a JSON %s", k.key, strings.ReplaceAll(k.kinds, ",", " or "), kind)
		}
	}
	err := errors.Join(
		t.number("minimum", &s.Minimum), t.number("maximum", &s.Maximum),
		t.number("exclusiveMinimum", &s.ExclusiveMinimum), t.number("exclusiveMaximum", &s.ExclusiveMaximum),
		t.count("minLength", &s.MinLength), t.count("maxLength", &s.MaxLength),
		t.count("minItems", &s.MinItems), t.count("maxItems", &s.MaxItems),
	)
	if err != nil {
		return err
	}
	if err := s.contradiction(); err != nil {
		return err
	}
	if v, ok := t["pattern"]; ok {
		s.Pattern = v
	}
	if v, ok := t["format"]; ok {
		s.Format = v
	}
	if err := t.content(s); err != nil {
		return err
	}
	if v, ok := t["enum"]; ok {
		values, err := list("enum", v, kind, typ)
		if err != nil {
			return err
		}
		s.Enum = values
		return s.admitAll("enum", values)
	}
	return nil
}

// content adds to s what the tags say about the content of a string.
func (t tags) content(s *schema) error {
	if v, ok := t["contentEncoding"]; ok {
		if v != "base64" {
			return fmt.Errorf("the tag contentEncoding:%q is not known: it can be \"base64\"", v)
		}
		s.ContentEncoding = v
	}
	if v, ok := t["contentMediaType"]; ok {
		if kind, subtype, ok := strings.Cut(v, "/"); !ok || kind == "" || subtype == "" || strings.ContainsAny(v, " ,") {
			return fmt.Errorf("the tag contentMediaType:%q is not a media type: write it like \"image/png\"", v)
		}
		s.ContentMediaType = v
	}
	return nil
}

// annotate adds to s what the tags say to readers.
func (t tags) annotate(s *schema, typ reflect.Type) error {
	if v, ok := t["description"]; ok {
		s.Description = v
	}
	kind := kindOf(s, typ)
	if kinds, ok := s.Type.([]string); ok {
		kind = kinds[0]
	}
	if v, ok := t["default"]; ok {
		value, err := literal("default", v, kind, typ)
		if err != nil {
			return err
		}
		if s.Enum != nil && !containsValue(s.Enum, value) {
			return fmt.Errorf("the default %s is not one of the enum's values", value)
		}
		if err := s.admitAll("default", []json.RawMessage{value}); err != nil {
			return err
		}
		s.Default = value
	}
	if v, ok := t["examples"]; ok {
		values, err := list("examples", v, kind, typ)
		if err != nil {
			return err
		}
		s.Examples = values
		return s.admitAll("examples", values)
	}
	return nil
}

func (t tags) number(key string, to *json.RawMessage) error {
	v, ok := t[key]
	if !ok {
		return nil
	}
	var n json.Number
	if err := json.Unmarshal([]byte(v), &n); err != nil || v[0] == '"' {
		return fmt.Errorf("the tag %s:%q is not a JSON number", key, v)
	}
	return t.narrow(key, json.RawMessage(v), to)
}

// narrow replaces a bound of the type by another, which must be within it.
func (t tags) narrow(key string, value json.RawMessage, to *json.RawMessage) error {
	if *to != nil && (strings.HasPrefix(key, "min") && above(*to, value) || strings.HasPrefix(key, "max") && above(value, *to)) {
		return fmt.Errorf("the tag %s:%q is out of the type's range, which is %s", key, t[key], *to)
	}
	*to = value
	return nil
}

func (t tags) count(key string, to *json.RawMessage) error {
	v, ok := t[key]
	if !ok {
		return nil
	}
	n, err := strconv.ParseUint(v, 10, 31)
	if err != nil {
		return fmt.Errorf("the tag %s:%q is not a count: write a whole number, 0 or more", key, v)
	}
	return t.narrow(key, number(int64(n)), to)
}

// literal returns the JSON of a value in a tag: plain text for a string, JSON otherwise.
func literal(key, text, kind string, typ reflect.Type) (json.RawMessage, error) {
	value := []byte(text)
	switch valid := json.Valid(value); {
	case kind == "string":
		var err error
		if value, err = Encode(text); err != nil {
			return nil, err
		}
	case !valid && kind == "":
		return nil, fmt.Errorf("the tag %s:%q is not valid JSON: write a text in quotes, as in %s:%q", key, text, key, strconv.Quote(text))
	case !valid:
		return nil, fmt.Errorf("the tag %s:%q is not a JSON %s", key, text, kind)
	}
	return checked(key, value, typ)
}

// list returns the JSON of the values in a tag: a JSON array, or literals with commas between.
func list(key, text, kind string, typ reflect.Type) ([]json.RawMessage, error) {
	var out []json.RawMessage
	if kind != "array" && strings.HasPrefix(text, "[") || kind == "array" && strings.HasPrefix(text, "[[") {
		if err := json.Unmarshal([]byte(text), &out); err != nil {
			return nil, fmt.Errorf("the tag %s:%q is not a JSON array: %w", key, text, err)
		}
		for i, v := range out {
			value, err := checked(key, v, typ)
			if err != nil {
				return nil, err
			}
			out[i] = value
		}
		return out, nil
	}
	if kind == "array" || kind == "object" || kind == "" { // their commas do not part values
		value, err := literal(key, text, kind, typ)
		return append(out, value), err
	}
	for _, part := range strings.Split(text, ",") {
		value, err := literal(key, strings.TrimSpace(part), kind, typ)
		if err != nil {
			return nil, err
		}
		out = append(out, value)
	}
	return out, nil
}

// checked returns value, compact, after a look at whether it fits the field.
func checked(key string, value []byte, typ reflect.Type) (json.RawMessage, error) {
	var compact bytes.Buffer
	if err := json.Compact(&compact, value); err != nil {
		return nil, fmt.Errorf("the tag %s: %s is not valid JSON: %w", key, value, err)
	}
	if compact.String() == "null" {
		return nil, fmt.Errorf("the tag %s: null is not accepted; leave the value out", key)
	}
	if err := Fits(compact.String(), typ); err != nil {
		return nil, fmt.Errorf("the tag %s: %s does not fit %s", key, value, typ)
	}
	return compact.Bytes(), nil
}

// quote returns the schema of a field with the string option: its JSON stands in a string.
func quote(s *schema, t tags) (*schema, error) {
	for key := range t {
		if key != "description" && key != "required" {
			return nil, fmt.Errorf("the tag %s can't be combined with the json tag's option string: remove one", key)
		}
	}
	switch s.Type {
	case "integer":
		return &schema{Type: "string", Pattern: "^-?[0-9]+$"}, nil
	case "number":
		return &schema{Type: "string", Pattern: `^-?[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?$`}, nil
	case "boolean":
		return &schema{Type: "string", Enum: []json.RawMessage{json.RawMessage(`"true"`), json.RawMessage(`"false"`)}}, nil
	}
	return nil, errors.New("the json tag's option string is for numbers and booleans: remove it")
}

func contains(list []string, s string) bool {
	for _, e := range list {
		if e == s {
			return true
		}
	}
	return false
}

func containsValue(list []json.RawMessage, value json.RawMessage) bool {
	for _, e := range list {
		if bytes.Equal(e, value) {
			return true
		}
	}
	return false
}
