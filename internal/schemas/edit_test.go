package schemas_test

import (
	"bytes"
	"encoding/json"
	"math/big"
	"runtime"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/schemas"
)

// An edited is a valid body, and what a tool gets for it.
type edited struct{ name, schema, body, want string }

func (e edited) check(t *testing.T) {
	t.Helper()
	s, err := schemas.CompileParameters(json.RawMessage(`{"type":"object",` + e.schema[1:]))
	if err != nil {
		t.Errorf("%s: %v", e.name, err)
		return
	}
	got, err := s.Validate([]byte(e.body))
	if err != nil {
		t.Errorf("%s: %s", e.name, violationsOf(t, err))
	} else if string(got) != e.want {
		t.Errorf("%s: got %s, want %s", e.name, got, e.want)
	}
}

func TestIntegersAreWrittenOut(t *testing.T) {
	t.Parallel()
	const integer = `{"properties":{"n":{"type":"integer"}}}`
	for _, test := range []edited{
		{"plain", integer, `{"n": 12}`, `{"n": 12}`},
		{"a point", integer, `{"n":1.0}`, `{"n":1}`},
		{"an exponent", integer, `{ "n" : -1.25E+2 , "x": 1.0 }`, `{ "n" : -125 , "x": 1.0 }`},
		{"zero", integer, `{"n":-0.0}`, `{"n":0}`},
		{"zeros in front", integer, `{"n":0.001e5}`, `{"n":100}`},
		{"the largest integer of 64 bits", integer, `{"n":18446744073709551615.0}`, `{"n":18446744073709551615}`},
		{"minus zero", integer, `{"n":-0}`, `{"n":0}`},
		{"zero with an exponent", integer, `{"n":-0e400}`, `{"n":0}`},
		{"beyond 64 bits", integer, `{"n":1e22}`, `{"n":1` + strings.Repeat("0", 22) + `}`},
		{"beyond 64 bits, with a point", integer, `{"n":-12345678901234567890123.50e1}`, `{"n":-123456789012345678901235}`},
		{"the largest float", integer, `{"n":1.7976931348623157e308}`, `{"n":17976931348623157` + strings.Repeat("0", 292) + `}`},
		{"too long to write out", integer, `{"n":1e309}`, `{"n":1e309}`},
		{"without end", integer, `{"n":1e400}`, `{"n":1e400}`},
		{"long and plain", integer, `{"n":100000000000000000000}`, `{"n":100000000000000000000}`},
		{"a number", `{"properties":{"n":{"type":"number"}}}`, `{"n":1.0}`, `{"n":1.0}`},
		{"either", `{"properties":{"n":{"type":["integer","number"]}}}`, `{"n":1.0}`, `{"n":1.0}`},
		{"or null", `{"properties":{"n":{"type":["null","integer"]}}}`, `{"n":1.0}`, `{"n":1}`},
		{"no type", `{"properties":{"n":{"minimum":0}}}`, `{"n":1.0}`, `{"n":1.0}`},
		{"asked twice", `{"allOf":[` + integer + `,` + integer + `]}`, `{"n":1.0}`, `{"n":1}`},
		{"a branch", `{"properties":{"n":{"anyOf":[{"type":"string"},{"type":"integer"}]}}}`, `{"n":1.0}`, `{"n":1}`},
		{"items", `{"additionalProperties":{"items":{"type":"integer"}}}`, `{"n":[1.0,2,3e0]}`, `{"n":[1,2,3]}`},
		{"beside defaults", `{"properties":{"n":{"type":"integer"},"o":{"properties":{"a":{"default":1}}},"z":{"default":2}}}`,
			`{"o":{},"n":1.0}`, `{"o":{"a":1},"n":1,"z":2}`},
		{"a default", `{"properties":{"n":{"type":"integer","default":1.0}}}`, `{}`, `{"n":1}`},
	} {
		test.check(t)
	}
}

// TestManyIntegers has items for which many schemas require an integer: each is written out once. The test is not parallel, because it counts
// allocations.
func TestManyIntegers(t *testing.T) {
	s := schemas.MustCompile(`{"type":"object","properties":{"a":{"items":{"allOf":[` + strings.Repeat(`{"type":"integer"},`, 50) + `{}]}}}}`)
	const n = 10_000
	list := func(item string) string { return `{"a":[` + strings.Repeat(item+",", n) + item + `]}` }
	body, want := []byte(list("1.0")), list("1")
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	got, err := s.Validate(body)
	runtime.ReadMemStats(&after)
	if err != nil || string(got) != want {
		t.Errorf("got %.40s … and %v, want %.40s …", got, err, want)
	}
	if size := after.TotalAlloc - before.TotalAlloc; size > 1000*n {
		t.Errorf("%d bytes are allocated for %d items", size, n)
	}
}

// TestWrittenIntegersAreBounded has short texts for long integers: the written text is bounded, as defaults are.
// Proves: Limits hold, one by one and in sum
func TestWrittenIntegersAreBounded(t *testing.T) {
	t.Parallel()
	s := schemas.MustCompile(`{"type":"object","properties":{"a":{"items":{"type":"integer"}}}}`)
	list := func(n int) []byte { return []byte(`{"a":[` + strings.Repeat("1e308,", n) + `1]}`) }
	if got, err := s.Validate(list(3000)); err != nil || len(got) < 3000*309 {
		t.Errorf("got %d bytes and %v, want 3,000 integers", len(got), err)
	}
	if got, err := s.Validate(list(100_000)); err == nil {
		t.Errorf("got %d bytes, want a refusal", len(got))
	} else if text := violationsOf(t, err); !strings.Contains(text, "too much work") {
		t.Errorf("got %.300s", text)
	}
}

// FuzzIntegers checks with math/big what a number becomes if the schema requires an integer.
// Proves: Limits hold, one by one and in sum
func FuzzIntegers(f *testing.F) {
	s := schemas.MustCompile(`{"type":"object","properties":{"n":{"type":"integer"}}}`)
	for _, text := range []string{"0", "-0", "-0.0", "1", "-1.0", "1e2", "1.25e2", "1.25e1", "100e-2", "1e-2", "1e20", "1E22", "1e+308", "1e309", "0.1e310",
		"18446744073709551616", "123456789012345678901234567890.10e1", "1.5", "0e999999", "-12e-0"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if i := strings.IndexAny(text, "eE"); len(text) > 400 || i >= 0 && len(text)-i > 5 || !json.Valid([]byte(text)) {
			return // math/big would write it out
		}
		want, ok := new(big.Rat).SetString(text)
		if !ok || strings.TrimSpace(text) != text {
			return // not a single number
		}
		got, err := s.Validate([]byte(`{"n":` + text + `}`))
		if (err == nil) != want.IsInt() {
			t.Fatalf("%s is an integer: %t, got %v", text, want.IsInt(), err)
		}
		if err != nil {
			return
		}
		written := strings.TrimSuffix(strings.TrimPrefix(string(got), `{"n":`), "}")
		if digits := want.Num().String(); len(strings.TrimPrefix(digits, "-")) <= 309 && written != digits {
			t.Fatalf("%s reaches the tool as %s, want %s", text, written, digits)
		} else if len(strings.TrimPrefix(digits, "-")) > 309 && written != text {
			t.Fatalf("%s is long and reaches the tool as %s, want it unchanged", text, written)
		}
	})
}

// FuzzEdits fills in defaults and writes out integers. A second time nothing may change, and no part of the body may be lost.
// Proves: Limits hold, one by one and in sum
func FuzzEdits(f *testing.F) {
	s := schemas.MustCompile(`{"type":"object","properties":{"n":{"type":"integer","default":3.0},"o":{"$ref":"#"},
		"l":{"items":{"anyOf":[{"type":"integer"},{"$ref":"#"},{"type":"string"}]}}}}`)
	f.Add([]byte(`{"n":1.0,"o":{"l":[1e2,{},"1.0",{"n":0.5e1}]}}`))
	f.Add([]byte(` { } `))
	f.Add([]byte(`{"o":{"n":-0.0},"x":[1.0]}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		once, err := s.Validate(body)
		if err != nil {
			return
		}
		twice, err := s.Validate(once)
		if err != nil || !bytes.Equal(twice, once) {
			t.Fatalf("edited again: got %s and %v, want %s", twice, err, once)
		}
		var before, after map[string]any
		if len(bytes.TrimSpace(body)) == 0 {
			body = []byte("{}")
		}
		if json.Unmarshal(body, &before) != nil {
			return // a number beyond float64
		}
		if err := json.Unmarshal(once, &after); err != nil {
			t.Fatalf("%s: %v", once, err)
		}
		if !holds(after, before) {
			t.Fatalf("got %s of %s", once, body)
		}
	})
}

// holds reports whether a contains everything in b.
func holds(a, b any) bool {
	switch b := b.(type) {
	case map[string]any:
		object, ok := a.(map[string]any)
		for name, value := range b {
			ok = ok && holds(object[name], value)
		}
		return ok
	case []any:
		list, ok := a.([]any)
		ok = ok && len(list) == len(b)
		for n, value := range b {
			ok = ok && holds(list[n], value)
		}
		return ok
	}
	return a == b
}
