package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"strings"
	"testing"

	toolsrv "github.com/toolsrv/toolsrv/sdk/go"
	"github.com/toolsrv/toolsrv/sdk/go/toolsrvtest"
)

func TestExamples(t *testing.T) {
	t.Parallel()
	toolsrvtest.Examples(t, module)
}

// A page is an answer whose rows are not decoded.
type page struct {
	Rows           json.RawMessage
	Total, Matched int
	NextOffset     *int `json:"next_offset"`
}

// call calls the tool with a CSV text. others are further arguments: JSON members, with a comma before each.
func call(t *testing.T, text, others string) (out page, err error) {
	t.Helper()
	quoted, _ := json.Marshal(text)
	result, err := toolsrvtest.Call(t, module, "query", `{"csv": `+string(quoted)+others+`}`)
	if err != nil {
		return out, err
	}
	if err := json.Unmarshal([]byte(result), &out); err != nil {
		t.Fatalf("%s: %v", result, err)
	}
	return out, nil
}

func TestRead(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, csv, others, want string }{
		{"plain", "a,b\n1,x\n", ``, `[{"a":1,"b":"x"}]`},
		{"no rows", "a,b\n", ``, `[]`},
		{"byte order mark", "\ufeffa\n1", ``, `[{"a":1}]`},
		{"CR LF", "a,b\r\n1,2\r\n", ``, `[{"a":1,"b":2}]`},
		{"CR", "a,b\r1,2\r", ``, `[{"a":1,"b":2}]`},
		{"quoted", "a,b\n\"x, \"\"y\"\"\nz\",2", ``, `[{"a":"x, \"y\"\nz","b":2}]`},
		{"semicolons", "a;b\n1,5;2", ``, `[{"a":"1,5","b":2}]`},
		{"tabs", "a\tb\n1\t2", ``, `[{"a":1,"b":2}]`},
		{"pipes", "a|b\n1|2", ``, `[{"a":1,"b":2}]`},
		{"delimiter in a quoted name", "\"a;b;c\",d\n1,2", ``, `[{"a;b;c":1,"d":2}]`},
		{"delimiter told", "a,b|c\n1,2|3", `,"delimiter":"pipe"`, `[{"a,b":"1,2","c":3}]`},
		{"empty lines", "a\n\n1\n\n", ``, `[{"a":1}]`},
		{"no header", "1,x\n2,y", `,"header":false`, `[{"column_1":1,"column_2":"x"},{"column_1":2,"column_2":"y"}]`},
		{"names missing or twice", "a,,a,a_2\n1,2,3,4", ``, `[{"a":1,"column_2":2,"a_2":3,"a_2_2":4}]`},
		{"cells missing", "a,b\n1", ``, `[{"a":1,"b":""}]`},
		{"numbers", "a\n-1\n1.5\n1e3\n", ``, `[{"a":-1},{"a":1.5},{"a":1e3}]`},
		{"numbers and empty cells", "a,b\n1,x\n,y", ``, `[{"a":1,"b":"x"},{"a":null,"b":"y"}]`},
		{"no numbers", "a,b,c,d,e\n007,+1,1_000,NaN,0x1", ``, `[{"a":"007","b":"+1","c":"1_000","d":"NaN","e":"0x1"}]`},
		{"number too large to be exact", "a\n12345678901234567890", ``, `[{"a":"12345678901234567890"}]`},
		{"number beyond floats", "a\n1e999", ``, `[{"a":"1e999"}]`},
		{"one text makes a column text", "a\n1\nx", ``, `[{"a":"1"},{"a":"x"}]`},
		{"booleans", "a\nTRUE\nfalse", ``, `[{"a":true},{"a":false}]`},
		{"all text", "a\n1", `,"types":"text"`, `[{"a":"1"}]`},
		{"HTML and NUL", "a\n<b>\x00", ``, `[{"a":"<b>\u0000"}]`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := call(t, test.csv, test.others)
			if err != nil || string(got.Rows) != test.want {
				t.Errorf("%q: got %s, %v, want %s", test.csv, got.Rows, err, test.want)
			}
		})
	}
}

const cities = "city,country,people,capital\nParis,FR,2102650,true\nLyon,FR,522250,false\nBerlin,DE,3677472,true\nUlm,DE,,false\n"

func TestQuery(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, others, want string }{
		{"equal", `,"where":[{"column":"city","is":"equal","value":"paris"}]`, "Paris"},
		{"not equal", `,"where":[{"column":"country","is":"not_equal","value":"FR"}]`, "Berlin Ulm"},
		{"all conditions", `,"where":[{"column":"country","is":"equal","value":"FR"},{"column":"capital","is":"equal","value":false}]`, "Lyon"},
		{"greater", `,"where":[{"column":"people","is":"greater","value":522250}]`, "Paris Berlin"},
		{"at least, as text", `,"where":[{"column":"people","is":"at_least","value":"522250"}]`, "Paris Lyon Berlin"},
		{"less leaves empty cells out", `,"where":[{"column":"people","is":"less","value":1e6}]`, "Lyon"},
		{"texts that are at most a text", `,"where":[{"column":"city","is":"at_most","value":"lyon"}]`, "Lyon Berlin"},
		{"contains", `,"where":[{"column":"city","is":"contains","value":"R"}]`, "Paris Berlin"},
		{"does not contain", `,"where":[{"column":"city","is":"not_contains","value":"r"}]`, "Lyon Ulm"},
		{"starts", `,"where":[{"column":"people","is":"starts_with","value":"5"}]`, "Lyon"},
		{"ends", `,"where":[{"column":"city","is":"ends_with","value":"N"}]`, "Lyon Berlin"},
		{"one of", `,"where":[{"column":"people","is":"one_of","value":[522250,"3677472"]}]`, "Lyon Berlin"},
		{"one of, empty", `,"where":[{"column":"city","is":"one_of","value":["ULM","x"]}]`, "Ulm"},
		{"empty", `,"where":[{"column":"people","is":"empty"}]`, "Ulm"},
		{"not empty", `,"where":[{"column":"people","is":"not_empty"}]`, "Paris Lyon Berlin"},
		{"name in another case", `,"where":[{"column":" City ","is":"equal","value":"Ulm"}]`, "Ulm"},
		{"sort", `,"sort":[{"column":"people"}]`, "Lyon Paris Berlin Ulm"},
		{"sort down, empty last", `,"sort":[{"column":"people","descending":true}]`, "Berlin Paris Lyon Ulm"},
		{"sort by two", `,"sort":[{"column":"country"},{"column":"city","descending":true}]`, "Ulm Berlin Paris Lyon"},
		{"page", `,"offset":1,"limit":2`, "Lyon Berlin"},
		{"none", `,"limit":0`, ""},
		{"beyond", `,"offset":9`, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			page, err := call(t, cities, test.others+`,"select":["city"]`)
			got := strings.NewReplacer(`[`, ``, `]`, ``, `{"city":"`, ``, `"}`, ``, `,`, ` `).Replace(string(page.Rows))
			if err != nil || got != test.want {
				t.Errorf("got %s, %v, want %s", got, err, test.want)
			}
		})
	}
}

// TestManyValues has a list of values and a table that would take more than 5 s to compare one by one.
func TestManyValues(t *testing.T) {
	t.Parallel()
	var rows, values strings.Builder
	for i := range 50_000 {
		fmt.Fprintf(&rows, "%d\n", i)
		fmt.Fprintf(&values, ",%d.0", 2*i)
	}
	got, err := call(t, "a\n"+rows.String(), `,"limit":1,"where":[{"column":"a","is":"one_of","value":[`+values.String()[1:]+`]}]`)
	if err != nil || got.Matched != 25_000 {
		t.Errorf("got %d rows, %v, want 25000", got.Matched, err)
	}
}

func TestPaging(t *testing.T) {
	t.Parallel()
	got, err := call(t, cities, `,"limit":1,"offset":1,"where":[{"column":"country","is":"equal","value":"FR"}]`)
	if err != nil || got.Total != 4 || got.Matched != 2 || got.NextOffset != nil {
		t.Errorf("last page: got %+v, %v, want 4 rows, 2 matched, no next", got, err)
	}
	got, err = call(t, cities, `,"limit":1`)
	if err != nil || got.NextOffset == nil || *got.NextOffset != 1 {
		t.Errorf("first page: got %+v, %v, want to go on at 1", got, err)
	}
	wide := strings.Repeat("n", 1<<19) + "\n" + strings.Repeat("1\n", 20)
	got, err = call(t, wide, ``)
	if err != nil || got.NextOffset == nil || *got.NextOffset != 5 {
		t.Errorf("rows of half a megabyte: got the offset %v, %v, want 5 rows", got.NextOffset, err)
	}
}

// TestSlips makes mistakes that agents make. Each message says what to do.
func TestSlips(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, csv, others, want string }{
		{"nothing", " \n", ``, "pass CSV"},
		{"no such column", cities, `,"select":["town"]`, `no column "town"; the columns are "city", "country"`},
		{"column twice", cities, `,"select":["city","city"]`, "twice"},
		{"too many cells", "a,b\n1,2\n1,2,3", ``, "Line 3 has 3 cells, and there are 2 columns"},
		{"open quote", "a\n\"x", ``, "Line 2, column"},
		{"quote within", "a\nx\"y", ``, "Line 2, column 2: there is a quote within"},
		{"text in place of a number", cities, `,"where":[{"column":"people","is":"less","value":"many"}]`, `where[0]: the column "people" holds values of the type number`},
		{"empty text in place of a number", cities, `,"where":[{"column":"people","is":"equal","value":""}]`, `holds values of the type number`},
		{"number in place of a text", "a;b\n1,5;2", `,"where":[{"column":"a","is":"greater","value":1.2}]`, `which is text (1,5 and`},
		{"space before a quote", "a, b\n\"x\", \"y\"", ``, "with no space before"},
		{"no value", cities, `,"where":[{"column":"city","is":"equal"}]`, "where[0]: equal needs a value"},
		{"null", cities, `,"where":[{"column":"city","is":"equal","value":null}]`, `use "empty"`},
		{"list in place of a value", cities, `,"where":[{"column":"city","is":"equal","value":["a"]}]`, "is not a value to compare with"},
		{"value in place of a list", cities, `,"where":[{"column":"city","is":"one_of","value":"a"}]`, "one_of needs a list"},
		{"null in a list", cities, `,"where":[{"column":"city","is":"one_of","value":[null]}]`, "is not a value to compare with"},
		{"comparison", cities, `,"where":[{"column":"city","is":"like","value":"a"}]`, "where[0].is"},
		{"large row", strings.Repeat("n", 1<<20) + "," + strings.Repeat("m", 1<<20) + "," + strings.Repeat("o", 1<<20) + "\n1,2,3", ``, "select fewer columns"},
		{"too many columns", strings.Repeat("|", 20_000), ``, `more than 10000 cells: is '|' the delimiter?`},
		{"too many cells in all", strings.Repeat(",", 1<<10) + "\n" + strings.Repeat("1\n", 1<<10), ``, "more than 600000 cells"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			got, err := call(t, test.csv, test.others)
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %.100s, %v, want an error with %q", got.Rows, err, test.want)
			}
		})
	}
}

// FuzzNumber compares isNumber with encoding/json.
func FuzzNumber(f *testing.F) {
	for _, seed := range []string{"0", "-0", "-", "01", "1.", ".5", "1.5", "1e5", "1E+05", "1e", "1e+", "1e5x", "--1", "NaN", "9007199254740993", "1_0"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, cell string) {
		var n json.Number
		valid := json.Unmarshal([]byte(cell), &n) == nil && n.String() == cell && cell != ""
		if v, err := n.Float64(); valid && (err != nil || !strings.ContainsAny(cell, ".eE") && math.Abs(v) > 1<<53) {
			valid = false
		}
		if got := isNumber(cell); got != valid {
			t.Errorf("%q: got %t, want %t", cell, got, valid)
		}
	})
}

// FuzzRead reads any text: every row has a cell for each column, and is a JSON object.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{cities, "a\r\"b", "\ufeff;;;\n", "a,a,a\n1,2", "\"", "\x00\n\xff"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		table, err := read(new(toolsrv.Call), query{CSV: text, Delimiter: "auto", Header: true, Types: "auto"})
		if err != nil {
			return
		}
		columns, _ := table.pick(nil)
		if len(table.cells)%len(table.names) != 0 {
			t.Fatalf("%q: got %d cells, want a multiple of %d", text, len(table.cells), len(table.names))
		}
		for i := range table.rows() {
			var object map[string]any
			if err := json.Unmarshal(table.object(columns, i), &object); err != nil || len(object) > len(columns) {
				t.Fatalf("%q: got %s, %v, want an object of %d members", text, table.object(columns, i), err, len(columns))
			}
		}
	})
}

// FuzzCompareTexts checks that texts compare like their lower case.
func FuzzCompareTexts(f *testing.F) {
	for _, seed := range [][2]string{{"", ""}, {"a", ""}, {"a", "B"}, {"ab", "AB"}, {"ab", "A"}, {"Ä", "ä"}, {"İ", "i"}, {"ẞ", "ß"}, {"K", "k"}, {"\uffff", "😀"}, {"\xff", "\xfe"}, {"Z", "a"}, {"_", "a"}} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		for _, pair := range [][2]string{{a, b}, {b, a}} {
			got, want := compareTexts(pair[0], pair[1]), strings.Compare(strings.ToLower(pair[0]), strings.ToLower(pair[1]))
			if got != want {
				t.Errorf("%q and %q: got %d, want %d", pair[0], pair[1], got, want)
			}
		}
	})
}

// TestProgress checks that the tool reports all of its steps, and long ones more than once.
func TestProgress(t *testing.T) {
	t.Parallel()
	quoted, _ := json.Marshal("n\n" + strings.Repeat("1\n", 3500))
	reports, _, err := toolsrvtest.Progress(t, module, "query", `{"csv": `+string(quoted)+`, "limit": 1}`)
	if err != nil {
		t.Fatal(err)
	}
	counts := map[string]int{}
	for _, r := range reports {
		counts[r.Message]++
		if r.Total != steps || r.Done > steps {
			t.Errorf("got %+v, want part of %d", r, steps)
		}
	}
	if want := (map[string]int{"reading": 4, "filtering": 4, "sorting": 1}); !maps.Equal(counts, want) {
		t.Errorf("got %v, want %v", counts, want)
	}
}
