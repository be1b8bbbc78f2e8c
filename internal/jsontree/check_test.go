package jsontree_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/toolsrv/toolsrv/internal/jsontree"
)

func TestCheckRefuses(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text, msg string
		offset    int
	}{
		{``, "Expecting value", 0},
		{" \n", "Expecting value", 2},
		{`{} {}`, "Extra data", 3},
		{`[1,]`, "Expecting value", 3},
		{`[1 2]`, "Expecting ',' delimiter", 3},
		{`[1}`, "Expecting ',' delimiter", 2},
		{`{"a" 1}`, "Expecting ':' delimiter", 5},
		{`{"a":1,}`, "Expecting property name enclosed in double quotes", 7},
		{`{,}`, "Expecting property name enclosed in double quotes", 1},
		{`[-1.]`, "Invalid number", 1},
		{`[NaN]`, "NaN and Infinity are not JSON", 1},
		{`["a\x"]`, `Invalid \escape`, 3},
		{"[\"\xff\"]", "Invalid UTF-8", 2},
		{strings.Repeat("[", 11) + strings.Repeat("]", 11), "Nested too deeply", 10},
	} {
		err := jsontree.Check([]byte(test.text), 10)
		var wrong *jsontree.SyntaxError
		if !errors.As(err, &wrong) {
			t.Errorf("%.60q: got %v, want a SyntaxError", test.text, err)
		} else if wrong.Msg != test.msg || wrong.Offset != test.offset {
			t.Errorf("%.60q: got %q at %d, want %q at %d", test.text, wrong.Msg, wrong.Offset, test.msg, test.offset)
		}
	}
}

func TestCheckDepth(t *testing.T) {
	t.Parallel()
	for depth := range jsontree.MaxCheckDepth + 1 {
		text := []byte(strings.Repeat(`{"a":`, depth/2) + strings.Repeat("[", depth-depth/2) + strings.Repeat("]", depth-depth/2) + strings.Repeat("}", depth/2))
		if depth == 0 {
			text = []byte("1")
		}
		if err := jsontree.Check(text, depth); err != nil {
			t.Fatalf("depth %d of %d: %v", depth, depth, err)
		}
		if err := jsontree.Check(text, depth-1); depth > 0 && err == nil {
			t.Fatalf("depth %d of %d is accepted", depth, depth-1)
		}
	}
}

// Not parallel: AllocsPerRun counts what the whole process allocates.
func TestCheckAllocations(t *testing.T) {
	text := []byte(`{"a":[1,-2.5e3,"x\u00e9",true,null,{}],"b":"äöü"}`)
	if n := testing.AllocsPerRun(10, func() {
		if err := jsontree.Check(text, 100); err != nil {
			t.Error(err)
		}
	}); n != 0 {
		t.Errorf("got %v allocations, want none", n)
	}
}

// FuzzCheck compares Check with the standard library and with Read, which is stricter.
func FuzzCheck(f *testing.F) {
	for _, seed := range []string{
		``, ` `, `{}`, `[]`, `{"a":1}`, `{"a":[1,2,{"b":null}],"c":true}`, `[1,]`, `[,1]`, `{"a"}`, `{"a":}`, `{,}`, `{"a":1,}`, `[1 2]`, `1 2`, `{}]`,
		`-`, `-0`, `01`, `0.`, `.1`, `1e`, `1e+`, `1E-5`, `-1.5e3`, `+1`, `tru`, `true`, `truex`, `nul`, `false`, `NaN`, `-Infinity`, `1e1000000000`,
		`"`, `""`, `"a`, `"\`, `"\"`, `"\""`, `"\u12"`, `"\u12zz"`, `"\uD800"`, `"\x"`, "\"\x00\"", "\"\n\"", "\"\x7f\"", `"1234567"`, `"12345678"`, `"123456789"`,
		`"1234567\n89012345\"6789"`, "\"1234567\x1f\"", `"äöüß€"`, "\"\xff\"", ` [ 1 , { "a" : "b" } ] `, "\v1", `{"a" 1}`, `["a":1]`, `{1:2}`, `{"a":1]`, `[1}`, `{"a":1,"a":2}`,
		`{ "a" : {"b": [ "]}" ]} , "\u0061" : "\"" , "c":-1e5 }`, `{"":[[],{}],"x":null } `,
		strings.Repeat("[", 1000) + strings.Repeat("]", 1000), strings.Repeat(`{"a":`, 63) + "1" + strings.Repeat("}", 63), strings.Repeat(`[{"a":`, 64) + "[]" + strings.Repeat("}]", 64),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		err := jsontree.Check(text, jsontree.MaxCheckDepth)
		var wrong *jsontree.SyntaxError
		if errors.As(err, &wrong) && wrong.Msg == jsontree.TooDeep {
			if n := strings.Count(string(text), "[") + strings.Count(string(text), "{"); n <= jsontree.MaxCheckDepth {
				t.Errorf("nested too deep by %d brackets", n)
			}
			return
		}
		if got, want := err == nil, json.Valid(text) && utf8.Valid(text); got != want {
			t.Errorf("%q: got %v, valid is %t", text, err, want)
		}
		var tree jsontree.Tree
		strict := tree.Read(string(text))
		if err != nil && (strict == nil || strict.Error() != err.Error()) && !stricter(strict) {
			t.Errorf("%q: got %v, Read says %v", text, err, strict)
		}
		if err == nil && strict != nil && !stricter(strict) {
			t.Errorf("%q: got no error, Read says %v", text, strict)
		}
		if err == nil {
			checkMembers(t, text)
		}
	})
}

// checkMembers compares the result of Members for valid JSON with that of encoding/json.
func checkMembers(t *testing.T, text []byte) {
	t.Helper()
	var want, got []string
	d := json.NewDecoder(bytes.NewReader(text))
	if first, err := d.Token(); err == nil && first == json.Delim('{') {
		for d.More() {
			name, err := d.Token()
			var value json.RawMessage
			if err := errors.Join(err, d.Decode(&value)); err != nil {
				t.Fatal(err)
			}
			want = append(want, name.(string), string(value))
		}
	}
	isObject, err := jsontree.Members(text, func(name string, value []byte) error {
		got = append(got, name, string(value))
		return nil
	})
	if isObject != (text[len(text)-len(bytes.TrimLeft(text, " \t\r\n"))] == '{') || err != nil || !slices.Equal(got, want) {
		t.Errorf("%q: got the members %q, an object: %t, %v; want %q", text, got, isObject, err, want)
	}
}

// stricter reports whether err is an error that Check does not look for, so that Read may stop earlier.
func stricter(err error) bool {
	var wrong *jsontree.SyntaxError
	return errors.As(err, &wrong) && (wrong.In >= 0 || wrong.Msg == jsontree.LoneSurrogate || strings.HasPrefix(wrong.Msg, "Number exponent"))
}

func BenchmarkCheck(b *testing.B) {
	for name, text := range map[string]string{
		"text":    `{"a":"` + strings.Repeat("some words of text ", 1000) + `"}`,
		"numbers": `[` + strings.Repeat(`12.5,`, 4000) + `1]`,
		"records": `[` + strings.Repeat(`{"name":"some name","price":12.5,"tags":["a","b"]},`, 400) + `{}]`,
		"short":   `{"sum":5}`,
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if err := jsontree.Check([]byte(text), jsontree.MaxCheckDepth); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(name+"/library", func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if !json.Valid([]byte(text)) {
					b.Fatal("not valid")
				}
			}
		})
	}
}
