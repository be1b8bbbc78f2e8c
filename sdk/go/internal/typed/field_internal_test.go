package typed

import (
	"reflect"
	"strings"
	"testing"
)

// Base is embedded by TestTagSlips.
type Base struct{ V int }

// TestTagSlips builds its structs at run time, because go vet would refuse them in source.
func TestTagSlips(t *testing.T) {
	t.Parallel()
	field := func(name string, v any, tag reflect.StructTag) reflect.StructField {
		return reflect.StructField{Name: name, Type: reflect.TypeOf(v), Tag: tag}
	}
	hidden := func(tag reflect.StructTag) reflect.StructField {
		return reflect.StructField{Name: "a", PkgPath: "example.com/tool", Type: reflect.TypeOf(0), Tag: tag}
	}
	embedded := func(tag reflect.StructTag) reflect.StructField {
		return reflect.StructField{Name: "Base", Anonymous: true, Type: reflect.TypeOf(Base{}), Tag: tag}
	}
	tests := []struct {
		name   string
		fields []reflect.StructField
		want   string
	}{
		{"same name", []reflect.StructField{field("A", 0, `json:"x"`), field("B", 0, `json:"x"`)}, `arguments: the fields A and B are both called "x"`},
		{"same name, one by its tag", []reflect.StructField{field("A", 0, ``), field("B", "", `json:"A"`)}, ``},
		{"bad name", []reflect.StructField{field("A", 0, `json:"a\"b"`)}, `the field A: "a\"b" is not a name`},
		{"dash", []reflect.StructField{field("A", 0, `json:"-,"`)}, ``},
		{"string option of text", []reflect.StructField{field("A", "", `json:"a,string"`)}, `arguments.a: the json tag's option string`},
		{"string option of a list", []reflect.StructField{field("A", []int(nil), `json:"a,string"`)}, ``},
		{"backslash", []reflect.StructField{field("A", "", `json:"a" pattern:"\d"`)}, `the field A: its tag is broken at pattern:"\d"`},
		{"no quotes", []reflect.StructField{field("A", "", `json:"a" minLength:3`)}, `the field A: its tag is broken at minLength:3`},
		{"no key", []reflect.StructField{field("A", "", `"a"`)}, `its tag is broken at "a"`},
		{"no end", []reflect.StructField{field("A", "", `json:"a`)}, `its tag is broken at json:"a`},
		{"no space", []reflect.StructField{field("A", 0, `json:"a"minimum:"1"`)}, `its tag is broken at minimum:"1"`},
		{"comma", []reflect.StructField{field("A", 0, `json:"a",minimum:"1"`)}, `its tag is broken at ,minimum:"1": write key:"value", with one space between two`},
		{"unexported", []reflect.StructField{hidden(`json:"a"`)}, `arguments: the field a has the tag json, but JSON leaves it out: begin its name with a capital letter`},
		{"unexported, described", []reflect.StructField{hidden(`description:"x"`)}, `the field a has the tag description`},
		{"unexported, misspelt", []reflect.StructField{hidden(`descripton:"x"`)}, `the field a: its tag "descripton" is not known: did you mean "description"?`},
		{"embedded, described", []reflect.StructField{embedded(`description:"x"`)}, `the field Base has the tag description, but is replaced by its own fields`},
		{"embedded, misspelt", []reflect.StructField{embedded(`descripton:"x"`)}, `the field Base: its tag "descripton" is not known`},
		{"embedded for another package", []reflect.StructField{embedded(`gorm:"embedded"`)}, ``},
		{"embedded under a name", []reflect.StructField{embedded(`json:"base" description:"x"`)}, ``},
		{"unexported for another package", []reflect.StructField{hidden(`db:"a"`)}, ``},
		{"unexported and left out", []reflect.StructField{hidden(`json:"-" description:"x"`)}, ``},
		{"spaces", []reflect.StructField{field("A", "", `  json:"a"   minLength:"3"  `)}, ``},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s, err := argumentsSchema(reflect.StructOf(test.fields))
			switch {
			case test.want == "" && err != nil:
				t.Errorf("got %v, want a schema", err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("got %v, %v, want an error with %s", s, err, test.want)
			}
		})
	}
}

func TestMeant(t *testing.T) {
	t.Parallel()
	for typed, want := range map[string]string{
		"descripton": "description", "desciption": "description", "Description": "description", "discripton": "description", "descriptions": "description",
		"defualt": "default", "defaults": "default", "example": "examples", "requird": "required", "require": "required", "enums": "enum",
		"minlength": "minLength", "min_length": "minLength", "maxLenght": "maxLength", "minItem": "minItems", "patern": "pattern", "fromat": "format",
		"minimun": "minimum", "exclusive_minimum": "exclusiveMinimum",
	} {
		if got := meant(typed); got != want {
			t.Errorf("%s: got %q, want %q", typed, got, want)
		}
	}
	for _, k := range tagKeys() {
		if got := meant(k.key); got != "" {
			t.Errorf("%s: got %q, want nothing", k.key, got)
		}
	}
	foreign := "json bson xml yaml toml ini hcl csv avro msgpack codec cbor protobuf db gorm sql datastore firestore dynamodbav redis mapstructure structs " +
		"env envconfig envDefault envPrefix flag long short arg help name placeholder group hidden choice value-name cmd optional sep " +
		"validate binding valid mod conform form query param path uri url header cookie schema jsonschema jsonschema_description swaggertype swaggerignore " +
		"extensions readOnly doc docs title label unit min max len size type key index copier faker fake parquet graphql ffjson easyjson serialize"
	for _, key := range strings.Fields(foreign) {
		if got := meant(key); got != "" {
			t.Errorf("%s, a tag of another package: got %q, want nothing", key, got)
		}
	}
}

// FuzzTag reads arbitrary tags: a mistake is an error, never a panic or a broken schema.
func FuzzTag(f *testing.F) {
	for _, seed := range []string{
		``, `json:"a,omitempty" description:"x"`, `json:"a" default:"x" enum:"x,y"`, `enum:"[\"a\",1]"`, `json:"a" minimum:"1"`,
		`json:"-"`, `json:",string"`, `default:"{}" examples:"[[]]"`, `pattern:"\d"`, `minItems:"99999999999999999999"`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, tag string) {
		for _, v := range []any{"", 0, 1.5, false, []string(nil), map[string]int(nil), struct{ X int }{}, any(nil)} {
			typ := reflect.TypeOf(&v).Elem()
			if v != nil {
				typ = reflect.TypeOf(v)
			}
			s, err := argumentsSchema(reflect.StructOf([]reflect.StructField{{Name: "A", Type: typ, Tag: reflect.StructTag(tag)}}))
			if err != nil {
				continue
			}
			text, err := Encode(s)
			if err != nil || !IsObject(string(text)) {
				t.Errorf("tag %q on %s: got %s, %v, want a JSON object", tag, typ, text, err)
			}
		}
	})
}
