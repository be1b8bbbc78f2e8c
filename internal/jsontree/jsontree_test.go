package jsontree_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math/big"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/jsontree"
)

func TestReadAccepts(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		`null`, ` true `, `false`, `0`, `-0`, `1.5e-10`, `1E+5`, `1e0000000000000000001`, `""`, `"a\u00e9\ud83d\ude00\n\/"`,
		`[]`, `[ ]`, `{}`, `{ }`, `[1,[2],{"a":3}]`, "\t{\"a\" : [ 1 , 2 ] }\r\n", `{"a":1,"b":2,"":3}`,
		strings.Repeat("[", jsontree.MaxDepth) + strings.Repeat("]", jsontree.MaxDepth),
	} {
		var tree jsontree.Tree
		if err := tree.Read(text); err != nil {
			t.Errorf("%.60q: %v", text, err)
		} else if got := strings.Trim(text, " \t\r\n"); tree.Values[0].Text != got {
			t.Errorf("root of %.60q: got %.60q", text, tree.Values[0].Text)
		}
	}
}

func TestReadRefuses(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text, msg string
		offset    int
	}{
		{``, "Expecting value", 0},
		{`  `, "Expecting value", 2},
		{`nul`, "Expecting value", 0},
		{`True`, "Expecting value", 0},
		{`NaN`, "NaN and Infinity are not JSON", 0},
		{`[Infinity]`, "NaN and Infinity are not JSON", 1},
		{`[-Infinity]`, "NaN and Infinity are not JSON", 1},
		{`01`, "Extra data", 1},
		{`+1`, "Expecting value", 0},
		{`-`, "Expecting value", 0},
		{`1.`, "Invalid number", 0},
		{`.5`, "Expecting value", 0},
		{`[1e]`, "Invalid number", 1},
		{`1e+`, "Invalid number", 0},
		{`1e1000000000`, "Number exponent out of range", 0},
		{`{} {}`, "Extra data", 3},
		{`{"a":1}x`, "Extra data", 7},
		{`[1,]`, "Expecting value", 3},
		{`[1 2]`, "Expecting ',' delimiter", 3},
		{`[1`, "Expecting ',' delimiter", 2},
		{`[`, "Expecting value", 1},
		{`{`, "Expecting property name enclosed in double quotes", 1},
		{`{"a":1,}`, "Expecting property name enclosed in double quotes", 7},
		{`{a:1}`, "Expecting property name enclosed in double quotes", 1},
		{`{"a" 1}`, "Expecting ':' delimiter", 5},
		{`{"a":}`, "Expecting value", 5},
		{`{"a":1 "b":2}`, "Expecting ',' delimiter", 7},
		{`{"a":1,"b":2,"a":3}`, "Duplicate property name", 13},
		{`{"a":1,"\u0061":3}`, "Duplicate property name", 7},
		{`{"1":1,"2":1,"3":1,"4":1,"5":1,"6":1,"7":1,"8":1,"9":1,"10":1,"3":1}`, "Duplicate property name", 62},
		{`"`, "Unterminated string starting at", 0},
		{`"\`, "Unterminated string starting at", 1},
		{"\"a\nb\"", "Invalid control character at", 2},
		{`"\x"`, `Invalid \escape`, 1},
		{`"\u12g4"`, `Invalid \uXXXX escape`, 1},
		{`"\ud800"`, `Lone surrogate in \uXXXX escape`, 1},
		{`"\udc00\ud800"`, `Lone surrogate in \uXXXX escape`, 1},
		{"[\"a\", \"\xff\"]", "Invalid UTF-8", 7},
		{"\ufeff{}", "Expecting value", 0},
		{strings.Repeat("[", jsontree.MaxDepth+1), "Nested too deeply", jsontree.MaxDepth},
		{strings.Repeat(`{"a":`, jsontree.MaxDepth+1), "Nested too deeply", 5 * jsontree.MaxDepth},
	} {
		var tree jsontree.Tree
		err := tree.Read(test.text)
		var wrong *jsontree.SyntaxError
		if !errors.As(err, &wrong) {
			t.Errorf("%.60q: got %v, want a SyntaxError", test.text, err)
		} else if wrong.Msg != test.msg || wrong.Offset != test.offset {
			t.Errorf("%.60q: got %q at %d, want %q at %d", test.text, wrong.Msg, wrong.Offset, test.msg, test.offset)
		}
	}
}

func TestTree(t *testing.T) {
	t.Parallel()
	var tree, other jsontree.Tree
	if err := tree.Read(`{"a": [10, {"b": "x\ty"}], "c": {}}`); err != nil {
		t.Fatal(err)
	}
	a := tree.Member(0, "a")
	second := tree.Values[tree.Values[a].First].Next
	b := tree.Member(second, "b")
	if got := tree.Values[b].Decoded(); got != "x\ty" {
		t.Errorf("b: got %q", got)
	}
	if got := tree.Values[second]; got.Index != 1 || got.Parent != a || got.Text != `{"b": "x\ty"}` {
		t.Errorf("second item: got %+v", got)
	}
	if err := other.Read(`{"d": [1, 2]}`); err != nil {
		t.Fatal(err)
	}
	c := tree.Member(0, "c")
	last := tree.Append(c, 0, "e", &other, 0)
	tree.Append(c, last, "f", &other, other.Member(0, "d"))
	if got := tree.Canonical(c); got != `{"e":{"d":[1,2,],},"f":[1,2,],}` {
		t.Errorf("c with additions: got %s", got)
	}
	name := tree.PushName(tree.Member(0, "a"))
	if got := tree.Values[name].Decoded(); got != "a" {
		t.Errorf("name: got %q", got)
	}
	tree.Pop()
}

// decimals are numbers that are compared in all pairs, and with math/big.
var decimals = []string{
	"0", "-0", "0.0", "0e5", "1", "-1", "1.0", "10e-1", "0.1e1", "100", "1e2", "1.00e2", "12", "12.5", "125e-1", "-12.5", "99", "1e-5", "0.00001",
	"123456789012345678901234567890", "123456789012345678901234567891", "1e30", "1e-30", "0.3", "0.30000000000000004", "9007199254740993", "3", "7", "0.007", "2.5",
}

func TestDecimalAgainstBig(t *testing.T) {
	t.Parallel()
	for _, x := range decimals {
		for _, y := range decimals {
			compareWithBig(t, x, y)
		}
	}
}

func compareWithBig(t *testing.T, x, y string) {
	t.Helper()
	p, q := jsontree.ParseDecimal(x), jsontree.ParseDecimal(y)
	a, okA := new(big.Rat).SetString(x)
	b, okB := new(big.Rat).SetString(y)
	if !okA || !okB {
		return
	}
	if got, want := p.Compare(&q), a.Cmp(b); got != want {
		t.Errorf("compare %s with %s: got %d, want %d", x, y, got, want)
	}
	if got, want := p.IsInteger(), a.IsInt(); got != want {
		t.Errorf("%s is an integer: got %v, want %v", x, got, want)
	}
	if _, ok := q.Uint64(); ok && b.Sign() != 0 {
		if got, want := p.IsMultipleOf(&q), new(big.Rat).Quo(a, b).IsInt(); got != want {
			t.Errorf("%s is a multiple of %s: got %v, want %v", x, y, got, want)
		}
	}
	var tree jsontree.Tree
	if err := tree.Read("[" + x + "," + y + "]"); err == nil {
		if got, want := tree.Canonical(1) == tree.Canonical(2), a.Cmp(b) == 0; got != want {
			t.Errorf("%s and %s have one canonical form: got %v, want %v", x, y, got, want)
		}
	}
}

func FuzzDecimal(f *testing.F) {
	for i, x := range decimals {
		f.Add(x, decimals[len(decimals)-1-i])
	}
	f.Fuzz(func(t *testing.T, x, y string) {
		for _, s := range []string{x, y} {
			var tree jsontree.Tree
			if tree.Read(s) != nil || tree.Values[0].Kind != jsontree.Number || len(s) > 50 {
				return
			}
			if i := strings.IndexAny(s, "eE"); i >= 0 && len(s)-i > 5 {
				return // math/big would write it out
			}
		}
		compareWithBig(t, strings.TrimSpace(x), strings.TrimSpace(y))
	})
}

func TestDecimalInt(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text string
		want int
	}{{"0", 0}, {"7", 7}, {"7.0", 7}, {"7e1", 70}, {"-7", 0}, {"1000", 1000}, {"1001", 1000}, {"1e300", 1000}, {"99999999999999999999", 1000}} {
		d := jsontree.ParseDecimal(test.text)
		if got := d.Int(1000); got != test.want {
			t.Errorf("%s: got %d, want %d", test.text, got, test.want)
		}
	}
}

func TestCanonical(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		x, y  string
		equal bool
	}{
		{`{"a":1,"b":2}`, `{"b":2.0,"a":1}`, true},
		{`{"a":1}`, `{"a":1,"b":2}`, false},
		{`["a","b"]`, `["a\",\"b"]`, false},
		{`["a"]`, `"[\"a\",]"`, false},
		{`"a/b"`, `"a\/b"`, true},
		{`"\u0061"`, `"a"`, true},
		{`"\u0001"`, `"\u0002"`, false},
		{`"1"`, `1`, false},
		{`0`, `false`, false},
		{`100`, `1e2`, true},
		{`1000000000000000000`, `1e18`, true},
		{`10000000000000000000`, `1e19`, true},
		{`[]`, `{}`, false},
		{`[[1],2]`, `[1,[2]]`, false},
		{`null`, `[null]`, false},
	} {
		var tree jsontree.Tree
		if err := tree.Read("[" + test.x + "," + test.y + "]"); err != nil {
			t.Fatal(err)
		}
		first := tree.Values[0].First
		x, y := tree.Canonical(first), tree.Canonical(tree.Values[first].Next)
		if (x == y) != test.equal {
			t.Errorf("%s and %s: equal is %v, want %v (%s, %s)", test.x, test.y, x == y, test.equal, x, y)
		}
	}
}

func FuzzRead(f *testing.F) {
	for _, text := range []string{`{"a":[1,-2.5e3,"x\u00e9",true,null,{}]}`, `"\ud83d\ude00"`, `[[[]]]`, `{"a":1,"a":2}`, "\"\xff\"", `1e999999999999`} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var tree jsontree.Tree
		if tree.Read(text) != nil {
			return
		}
		if most := jsontree.MostValues(text); len(tree.Values) > most {
			t.Errorf("%q: got %d values, want %d at most", text, len(tree.Values), most)
		}
		decoder := json.NewDecoder(bytes.NewReader([]byte(text)))
		decoder.UseNumber()
		var want any
		if err := decoder.Decode(&want); err != nil {
			t.Fatalf("%q is accepted, encoding/json says %v", text, err)
		}
		if _, err := decoder.Token(); err != io.EOF {
			t.Fatalf("%q is accepted, but has more after the value", text)
		}
		same(t, &tree, 0, want)
		tree.Canonical(0)
	})
}

// same compares a value with the result of encoding/json.
func same(t *testing.T, tree *jsontree.Tree, at int32, want any) {
	v := &tree.Values[at]
	switch want := want.(type) {
	case nil:
		if v.Kind != jsontree.Null {
			t.Fatalf("%s: got kind %d", v.Text, v.Kind)
		}
	case bool:
		if v.Kind != jsontree.Bool || (v.Text == "true") != want {
			t.Fatalf("%s: want %v", v.Text, want)
		}
	case json.Number:
		if v.Kind != jsontree.Number || v.Text != string(want) {
			t.Fatalf("%s: want %s", v.Text, want)
		}
	case string:
		if v.Kind != jsontree.String || v.Decoded() != want {
			t.Fatalf("%s: want %q", v.Text, want)
		}
	case []any:
		if v.Kind != jsontree.Array || int(v.Count) != len(want) {
			t.Fatalf("%s: want %d items", v.Text, len(want))
		}
		for c := v.First; c != 0; c = tree.Values[c].Next {
			same(t, tree, c, want[tree.Values[c].Index])
		}
	case map[string]any:
		if v.Kind != jsontree.Object || int(v.Count) != len(want) {
			t.Fatalf("%s: want %d members", v.Text, len(want))
		}
		for c := v.First; c != 0; c = tree.Values[c].Next {
			same(t, tree, c, want[tree.Values[c].Key])
		}
	}
}

func BenchmarkRead(b *testing.B) {
	text := `{"items":[` + strings.Repeat(`{"name":"some name","price":12.5,"tags":["a","b"]},`, 20) + `null]}`
	var tree jsontree.Tree
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		if err := tree.Read(text); err != nil {
			b.Fatal(err)
		}
	}
}

// TestErrorText checks that an error reads like a sentence, even if Python's words end with "at".
func TestErrorText(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`[1,`:       "Expecting value at byte 3",
		`"a`:        "Unterminated string starting at byte 0",
		"\"a\x01\"": "Invalid control character at byte 2",
	} {
		if err := new(jsontree.Tree).Read(text); err == nil || err.Error() != want {
			t.Errorf("%q: Read: got %v, want %s", text, err, want)
		}
		if err := jsontree.Check([]byte(text), jsontree.MaxDepth); err == nil || err.Error() != want {
			t.Errorf("%q: Check: got %v, want %s", text, err, want)
		}
	}
}

// TestMostValues checks how many values Read allocates for: few more than there are, and never less.
// Proves: Limits hold, one by one and in sum
func TestMostValues(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, text   string
		values, most int
	}{
		{"numbers", "[" + strings.Repeat("1,", 1000) + "1]", 1002, 1002},
		{"empty arrays", "[" + strings.Repeat("[],", 1000) + "[ ]]", 1002, 1002},
		{"empty objects", "[" + strings.Repeat("{},", 1000) + "{\n}]", 1002, 1002},
		{"nested", strings.Repeat("[", 100) + strings.Repeat("]", 100), 100, 100},
		{"a string of commas", `["` + strings.Repeat(`,[{`, 1000) + `"]`, 2, 2},
		{"with escaped quotes", `["` + strings.Repeat(`\",`, 1000) + `"]`, 2, 2},
		{"ordinary", `{"name":"some name","price":12.5,"tags":["a","b"],"x":{}}`, 7, 8},
		{"a string that never ends", `["` + strings.Repeat(",", 1000) + `\`, 0, 2},
	} {
		if got := jsontree.MostValues(test.text); got != test.most {
			t.Errorf("%s: got %d values at most, want %d", test.name, got, test.most)
		}
		var tree jsontree.Tree
		if err := tree.Read(test.text); test.values == 0 {
			continue
		} else if err != nil || len(tree.Values) != test.values || cap(tree.Values) != test.most {
			t.Errorf("%s: got %d values, room for %d, %v; want %d and %d", test.name, len(tree.Values), cap(tree.Values), err, test.values, test.most)
		}
	}
}
