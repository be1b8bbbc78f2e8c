package schemas_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/schemas"
	"github.com/toolsrv/toolsrv/internal/testkit"
)

// hostileSchemas are refused with an error that contains want, or else cost little. Without bounds, most of them would take minutes, or all memory.
var hostileSchemas = []struct{ name, want, text string }{
	{"many schemas", "more than 5000 schemas", `{"allOf":[` + strings.Repeat(`{},`, 340_000) + `{}]}`},
	{"as many schemas as are allowed", "", `{"allOf":[` + strings.Repeat(`{"type":"object"},`, 4997) + `{}]}`},
	{"many schemas with anchors", "", `{"anyOf":[` + numbered(4900, `{"$anchor":"a%d"}`) + `]}`},
	{"many addresses", "", `{"$defs":{` + numbered(4900, `"d%d":{"$id":"http://x/%[1]d"}`) + `},"type":"object"}`},
	{"a long chain of references", "", `{"$ref":"#/$defs/d0","$defs":{` + numbered(4900, `"d%d":{"$ref":"#/$defs/d%[2]d"}`) + `,"d4900":{}}}`},
	{"a chain that doubles", "expands to more than", `{"$ref":"#/$defs/d0","$defs":{` + doubling(60) + `"d60":{}}}`},
	{"nested", "", strings.Repeat(`{"not":`, 127) + `{}` + strings.Repeat(`}`, 127)},
	{"nested too deeply", "Nested too deeply", strings.Repeat(`{"not":`, 10_000) + `{}` + strings.Repeat(`}`, 10_000)},
	{"references to places that hold no schemas", "too many references", nowhere(120)},
	{"references into a long list", "too many references", `{"x":[` + strings.Repeat(`0,`, 100_000) + `{}],"allOf":[` + strings.Repeat(`{"$ref":"#/x/100000"},`, 4000) + `{}]}`},
	{"large numbers", "exponent out of range", `{"minimum":1e1000000000}`},
	{"long numbers", "a number in a schema", `{"enum":[` + strings.Repeat("9", 1_000_000) + `]}`},
	{"large lengths", "", `{"type":"object","minProperties":0,"maxProperties":1e300,"properties":{"a":{"minLength":1e20}}}`},
	{"many enum values", "", `{"enum":[` + strings.Repeat(`"aaaa",`, 100_000) + `0]}`},
	{"many required", "", `{"required":[` + numbered(50_000, `"a%d"`) + `]}`},
	{"many required beside others", "", `{"type":"object","allOf":[{"required":[` + numbered(100_000, `"a%d"`) + `]}]}`},
	{"alternatives that require many", "", `{"type":"object","anyOf":[` + strings.Repeat(`{"$ref":"#/$defs/a"},`, 2000) + `{}],"$defs":{"a":{"required":[` + numbered(80_000, `"a%d"`) + `]}}}`},
	{"a pattern of repeats", "too large", `{"pattern":"` + strings.Repeat(`.{1000}`, 400) + `"}`},
	{"a pattern of nested repeats", "repeat count", `{"pattern":"((a{100}){100}){100}"}`},
	{"a pattern of wide ranges", "is too large", `{"pattern":"(?i)` + strings.Repeat(`[a-\\u{10ffff}]`, 250) + `"}`},
	{"a pattern of Unicode classes", "is too large", `{"pattern":"[` + strings.Repeat(`\\pL`, 1300) + `]"}`},
	{"many patterns of Unicode classes", "too large together", `{"allOf":[` + strings.Repeat(`{"pattern":"[`+strings.Repeat(`\\pL`, 500)+`]"},`, 300) + `{}]}`},
	{"many patterns", "too large together", `{"allOf":[` + strings.Repeat(`{"pattern":"^.{1,900}$"},`, 1000) + `{}]}`},
	{"a long pattern", "4096 are allowed", `{"pattern":"` + strings.Repeat("a", 500_000) + `"}`},
	{"many defaults", "the defaults, filled in", `{"$ref":"#/$defs/d","$defs":{"d":{"default":"` + strings.Repeat("x", 500_000) + `"},` + numbered(4000, `"e%d":{"$ref":"#/$defs/d"}`) + `}}`},
	{"defaults that double", "the defaults, filled in", `{"properties":{"a":{"$ref":"#/$defs/d0"}},"$defs":{` + numbered(40, `"d%d":{"default":{},"properties":{"x":{"$ref":"#/$defs/d%[2]d"},"y":{"$ref":"#/$defs/d%[2]d"}}}`) + `,"d40":{"default":1}}}`},
	{"defaults with many alternatives", "too much work", `{"properties":{` + numbered(400, `"p%d":{"default":[`+strings.Repeat("1,", 500)+`1],"$ref":"#/$defs/t"}`) +
		`},"$defs":{"t":{"items":{"anyOf":[` + numbered(900, `{"const":"c%d"}`) + `,{"type":"integer"}]}}}}`},
	{"defaults without end", "never ends", `{"default":{},"properties":{"a":{"$ref":"#"}}}`},
	{"a long address", "not a valid address", `{"$id":"https://example.com/` + strings.Repeat("a", 400_000) + `","$defs":{` + numbered(4900, `"d%d":{"$anchor":"a%[1]d"}`) + `}}`},
	{"an address that grows", "not a valid address", strings.Repeat(`{"$id":"`+strings.Repeat("a", 1000)+`/","not":`, 100) + `{}` + strings.Repeat("}", 100)},
	{"a long reference", "not a valid reference", `{"$ref":"https://example.com/` + strings.Repeat("a", 400_000) + `"}`},
	{"a mistake below a long name", "", `{"properties":{"` + strings.Repeat("a", 400_000) + `":{"minLength":0}}}`},
	{"a long mistake", "/$schema", `{"$schema":"` + strings.Repeat("a", 400_000) + `"}`},
	{"a long mistake in a format", "correct it", `{"$defs":{"` + strings.Repeat("k", 1000) + `":{"$anchor":"` + strings.Repeat(" ", 400_000) + `"}}}`},
	{"many mistakes far below", "correct it", strings.Repeat(`{"not":`, 120) + `{"required":[` + strings.Repeat("1,", 400_000) + `1]}` + strings.Repeat(`}`, 120)},
	{"many schemas with mistakes", "correct it", strings.Repeat(`{"not":`, 100) + `{"allOf":[` + strings.Repeat(`{"minLength":-1,"maxLength":-1,"minItems":-1,"maxItems":-1,"title":1},`, 4800) + `{}]}` + strings.Repeat(`}`, 100)},
	{"many lists with mistakes", "correct it", `{"dependentRequired":{` + numbered(80_000, `"a%d":[1]`) + `}}`},
	{"a mistake after many valid names", "correct it", `{"$comment":"x","multipleOf":2,"required":[` + numbered(50_000, `"a%d"`) + `,1]}`},
	{"a cycle", "never ends", `{"$ref":"#"}`},
	{"a cycle of two", "never ends", `{"anyOf":[{"type":"null"},{"allOf":[{"$ref":"#"}]}]}`},
	{"a cycle through dependencies", "never ends", `{"dependentSchemas":{"a":{"$ref":"#"}}}`},
	{"too long", "are allowed", `{"description":"` + strings.Repeat("x", schemas.MaxSize) + `"}`},
}

func numbered(n int, format string) string {
	var out strings.Builder
	for i := range n {
		if i > 0 {
			out.WriteByte(',')
		}
		text := fmt.Sprintf(format, i, i+1)
		out.WriteString(strings.Split(text, "%!(EXTRA")[0])
	}
	return out.String()
}

func doubling(n int) string {
	return numbered(n, `"d%d":{"allOf":[{"$ref":"#/$defs/d%[2]d"},{"$ref":"#/$defs/d%[2]d"}]}`) + ","
}

// nowhere is a chain of values below an unknown keyword, with a reference to each of them.
func nowhere(depth int) string {
	var refs []string
	path := "#"
	for range depth {
		path += "/x"
		refs = append(refs, `{"$ref":"`+path+`"}`)
	}
	return `{"allOf":[` + strings.Join(refs, ",") + `],` + strings.Repeat(`"x":{`, depth) + `"enum":[` + strings.Repeat("0,", 100_000) + `0]` + strings.Repeat("}", depth+1)
}

// Proves: Limits hold, one by one and in sum
func TestHostileSchemas(t *testing.T) {
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("runs on one goroutine, so the race detector would find nothing")
	}
	for _, test := range hostileSchemas {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s, err := schemas.Compile(json.RawMessage(test.text))
			if test.want != "" {
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("got %v, want an error with %q", err, test.want)
				} else if len(err.Error()) > 1000 {
					t.Errorf("the error has %d bytes", len(err.Error()))
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			s.Document("x")
			s.Flat()
			s.Standalone()
			s.Media()
			for _, body := range []string{`{}`, `{"a":{"a":[]}}`} {
				if _, err := s.Validate([]byte(body)); err != nil {
					violationsOf(t, err)
				}
			}
		})
	}
}

// The cost of a body is bounded by its size, and a body that costs more is refused. Without bounds, most of these would take minutes, or all memory.
// Proves: Limits hold, one by one and in sum
func TestHostileBodies(t *testing.T) {
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("runs on one goroutine, and takes twenty times as long with the race detector")
	}
	const mega = 1 << 18
	list := func(n int, item string) string {
		return `{"a":[` + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + `]}`
	}
	all := func(keyword string, n int, item string) string {
		return `{"type":"object","properties":{"a":{"` + keyword + `":[` + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + `]}}}`
	}
	for _, test := range []struct{ name, want, schema, body string }{
		{"a unique list of numbers", "", `{"properties":{"a":{"uniqueItems":true}},"type":"object"}`, `{"a":[` + numbered(35_000, "%d") + `]}`},
		{"a unique list of objects", "", `{"properties":{"a":{"uniqueItems":true}},"type":"object"}`, `{"a":[` + numbered(20_000, `{"b":%d}`) + `]}`},
		{"nested lists of unique items", "", `{"type":"object","properties":{"a":{"$ref":"#/$defs/l"}},"$defs":{"l":{"uniqueItems":true,"items":{"$ref":"#/$defs/l"}}}}`, `{"a":` + strings.Repeat("[", 126) + numbered(32_000, "%d") + strings.Repeat("]", 126) + `}`},
		{"a number with a million digits", "multiple_of", `{"type":"object","properties":{"a":{"type":"integer","multipleOf":7,"minimum":3,"enum":[1,2]}}}`, `{"a":` + strings.Repeat("9", mega) + `}`},
		{"a number with a large exponent", "multiple_of", `{"type":"object","properties":{"a":{"type":"integer","multipleOf":0.007,"minimum":3}}}`, `{"a":1e999999999}`},
		{"a number with a larger exponent", "json_invalid", `{"type":"object"}`, `{"a":1e1000000000}`},
		{"a long number for many types", "too much work", all("anyOf", 1000, `{"type":"integer"}`), `{"a":1.` + strings.Repeat("0", mega) + `1}`},
		{"a long number for many divisors", "too much work", all("anyOf", 100, `{"multipleOf":7}`), `{"a":` + strings.Repeat("9", mega) + `1}`},
		{"a long name for many schemas", "too much work", all("anyOf", 500, `{"propertyNames":{"type":"number"}}`), `{"a":{"` + strings.Repeat("k", mega) + `":1}}`},
		{"an object for many constants", "too much work", all("anyOf", 20, `{"const":{}}`), `{"a":{` + numbered(mega/9, `"%d":1`) + `}}`},
		{"a list that many schemas require to be unique", "too much work", all("allOf", 75, `{"uniqueItems":true}`), `{"a":[` + numbered(mega/7, "%d") + `]}`},
		{"many defaults beside many members", "", `{"type":"object","properties":{` + numbered(4900, `"p%d":{"default":1}`) + `}}`, `{` + numbered(100_000, `"m%d":1`) + `}`},
		{"many violations", "more violations not listed", `{"type":"object","properties":{"a":{"items":{"type":"string"}}}}`, list(100_000, "1")},
		{"many missing members", "was not checked", `{"type":"object","properties":{"a":{"items":{"required":[` + numbered(1000, `"m%d"`) + `]}}}}`, list(75_000, "{}")},
		{"many members", "extra_forbidden", `{"type":"object","additionalProperties":false}`, `{` + numbered(20_000, `"m%d":1`) + `}`},
		{"many members and required", "missing", `{"type":"object","required":[` + numbered(20_000, `"x%d"`) + `]}`, `{` + numbered(20_000, `"m%d":1`) + `}`},
		{"many branches", "was not checked", `{"type":"object","properties":{"a":{"items":{"anyOf":[` + numbered(1000, `{"const":"v%d"}`) + `]}}}}`, list(50_000, "1")},
		{"branches in branches", "too much work", `{"type":"object","properties":{"a":{"$ref":"#/$defs/t"}},"$defs":{"t":{"anyOf":[{"type":"string"},{"items":{"$ref":"#/$defs/t"},"type":"array"},{"items":{"$ref":"#/$defs/t"},"type":"array","minItems":2}]}}}`, `{"a":` + strings.Repeat("[", 126) + `1` + strings.Repeat("]", 126) + `}`},
		{"a doubling at each level", "too much work", `{"type":"object","properties":{"a":{"$ref":"#/$defs/t"}},"$defs":{"t":{"allOf":[{"items":{"$ref":"#/$defs/t"}},{"items":{"$ref":"#/$defs/t"}}]}}}`, `{"a":` + strings.Repeat("[", 126) + `1` + strings.Repeat("]", 126) + `}`},
		{"a doubling of defaults", "too much work", `{"type":"object","properties":{"a":{"$ref":"#/$defs/t"}},"$defs":{"t":{"properties":{"d":{"default":1}},"allOf":[{"items":{"$ref":"#/$defs/t"}},{"items":{"$ref":"#/$defs/t"}}]}}}`, `{"a":` + strings.Repeat("[", 126) + `1` + strings.Repeat("]", 126) + `}`},
		{"many defaults", "too much work", `{"type":"object","properties":{"a":{"items":{"properties":{"d":{"default":"` + strings.Repeat("x", 1000) + `"}}}}}}`, list(75_000, "{}")},
		{"a slow pattern", "string_pattern_mismatch", `{"type":"object","properties":{"a":{"pattern":"(x+x+)+y"}}}`, `{"a":"` + strings.Repeat("x", mega) + `"}`},
		{"a large pattern", "too much work", `{"type":"object","properties":{"a":{"pattern":"(.{1,90}.{1,90}){1,5}y"}}}`, `{"a":"` + strings.Repeat("x", mega) + `"}`},
		{"patterns for many names", "too much work", `{"type":"object","patternProperties":{` + numbered(900, `"%d.*(a|b|c|d)+x$":{}`) + `}}`, `{` + numbered(20_000, `"m%d":1`) + `}`},
		{"a long duration", "time_delta_parsing", `{"type":"object","properties":{"a":{"format":"duration"}}}`, `{"a":"P` + strings.Repeat("1Y", mega/2) + `"}`},
		{"a long address", "ip_v4_address", `{"type":"object","properties":{"a":{"format":"ipv4"},"b":{"format":"email"}}}`, `{"a":"` + strings.Repeat(".", mega) + `"}`},
		{"many patterns as values", "", `{"type":"object","properties":{"a":{"items":{"format":"regex"}}}}`, list(500, `"`+strings.Repeat(".{1000}", 70)+`"`)},
		{"a large enum for a large value", "enum", `{"type":"object","properties":{"a":{"items":{"enum":[[1],{"b":2}]}}}}`, list(25_000, `[1,2,3]`)},
		{"wide ranges as values", "too much work", `{"type":"object","properties":{"a":{"items":{"format":"regex"}}}}`, list(100, `"(?i)`+strings.Repeat(`[a-\\u{10ffff}]`, 100)+`"`)},
		{"many repeats as values", "too much work", all("allOf", 20, `{"items":{"format":"regex"}}`), list(100, `"`+strings.Repeat("x*", 2000)+`"`)},
		{"Unicode classes as values", "too much work", `{"type":"object","properties":{"a":{"items":{"format":"regex"}}}}`, list(100, `"[`+strings.Repeat(`\\pL`, 1000)+`]"`)},
		{"names of a long path", "string_type", `{"type":"object","additionalProperties":{"additionalProperties":{"type":"string"}}}`, `{"` + strings.Repeat("k", mega/2) + `":{` + numbered(8_000, `"m%d":1`) + `}}`},
		{"property names", "[key]", `{"type":"object","propertyNames":{"maxLength":2,"pattern":"^q"}}`, `{` + numbered(20_000, `"m%d":1`) + `}`},
		{"contains", "extra_forbidden", `{"type":"object","properties":{"a":{"contains":{"anyOf":[{"const":7},{"type":"string"}]},"unevaluatedItems":false}}}`, list(100_000, "1")},
		{"nested too deeply", "Nested too deeply", `{"type":"object"}`, strings.Repeat(`{"a":`, 100_000)},
		{"dependencies", "missing", `{"type":"object","dependentRequired":{` + numbered(300, `"m%d":[`+strings.ReplaceAll(numbered(100, `"x%d"`), "%", "%%")+`]`) + `}}`, `{` + numbered(20_000, `"m%d":1`) + `}`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s, err := schemas.CompileParameters(json.RawMessage(test.schema))
			if err != nil {
				t.Fatal(err)
			}
			out, err := s.Validate([]byte(test.body))
			if test.want == "" {
				if err != nil {
					t.Fatal(violationsOf(t, err))
				}
				if limit := len(test.body) + 2<<20; len(out) > limit {
					t.Errorf("%d bytes became %d", len(test.body), len(out))
				}
				return
			}
			if err == nil {
				t.Fatal("accepted")
			}
			got := violationsOf(t, err)
			if !strings.Contains(got, test.want) {
				t.Errorf("got %.300s, want it to contain %q", got, test.want)
			}
			if len(got) > 80<<10 {
				t.Errorf("the answer has %d bytes", len(got))
			}
		})
	}
}

// TestValidateLittle compares ValidateLittle with Validate. A check that takes long is not decided.
// Proves: Limits hold, one by one and in sum
func TestValidateLittle(t *testing.T) {
	t.Parallel()
	var alternatives strings.Builder
	for i := range 2000 {
		fmt.Fprintf(&alternatives, `,{"const":%d}`, i)
	}
	items := func(n int) string { return `{"a":[` + strings.Repeat("1999,", n) + `1]}` }
	choice := `{"type":"object","properties":{"a":{"type":"array","items":{"anyOf":[` + alternatives.String()[1:] + `]}}}}`
	filled := `{"type":"object","properties":{"a":{"type":"string","default":"` + strings.Repeat("x", 20<<10) + `"}}}`
	plain := `{"type":"object","properties":{"a":{"type":"array","items":{"type":"integer"}},"b":{"type":"integer","default":1}}}`
	for name, test := range map[string]struct {
		schema, body string
		decided      bool
	}{
		"valid":                        {plain, items(3), true},
		"valid and long":               {plain, items(10_000), true},
		"not valid":                    {plain, `{"a":["x"],"b":0.5}`, true},
		"not JSON":                     {plain, `{`, true},
		"not an object":                {plain, `[]`, true},
		"empty":                        {plain, ``, true},
		"one choice":                   {choice, items(1), true},
		"many choices":                 {choice, items(100), false},
		"many choices that fail":       {choice, `{"a":["x"` + strings.Repeat(`,"x"`, 100) + `]}`, false},
		"much is filled in":            {filled, `{}`, false},
		"the default is there already": {filled, `{"a":""}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := schemas.MustCompile(test.schema)
			want, wrong := s.Validate([]byte(test.body))
			got, ok, err := s.ValidateLittle([]byte(test.body))
			if ok != test.decided {
				t.Errorf("decided: %t", ok)
			}
			if ok && (string(got) != string(want) || fmt.Sprint(err) != fmt.Sprint(wrong)) {
				t.Errorf("got %.100q, %v, want %.100q, %v", got, err, want, wrong)
			}
		})
	}
}

// TestMemory checks bodies of small values, which take many times their size in memory. A check never takes more than its bound. If the bound is high
// enough, it gives the same result as Validate. The test is not parallel, because it counts what the process allocates.
// Proves: Limits hold, one by one and in sum
func TestMemory(t *testing.T) {
	if testkit.Race(t) {
		t.Skip("runs on one goroutine, and takes twenty times as long with the race detector")
	}
	const size = 32 << 10
	repeated := func(item string) string {
		return `{"a":[` + strings.Repeat(item+",", size/(len(item)+1)) + item + "]}"
	}
	numbered := func(begin, item string) string {
		var out strings.Builder
		out.WriteString(begin + fmt.Sprintf(item, 0))
		for i := 1; out.Len() < size; i++ {
			out.WriteString("," + fmt.Sprintf(item, i))
		}
		return out.String()
	}
	bodies := map[string]string{
		"text": `{"a":"` + strings.Repeat(",[{:", size/4) + `"}`, "numbers": repeated("1"), "floats": repeated("1e0"), "strings": repeated(`""`),
		"arrays": repeated("[]"), "objects": repeated("{}"), "members": numbered("{", `"%x":1`) + "}", "names": numbered(`{"a":[{`, `"%x":1`) + "}]}",
		"all different": numbered(`{"a":[`, "%d") + "]}", "escaped": numbered(`{"a":[`, `"\\n%x"`) + "]}",
	}
	const item = `{"properties":{"a":{"items":`
	deep := `{"items":true}`
	for range 20 {
		deep = `{"anyOf":[` + deep + `]}`
	}
	for name, text := range map[string]string{
		"anything": `{"type":"object"}`, "integers": `{"type":"object",` + item[1:] + `{"type":"integer"}}}}`,
		"unique":    `{"type":"object","properties":{"a":{"uniqueItems":true}}}`,
		"marks":     `{"type":"object","properties":{"a":{"anyOf":[` + deep + `],"unevaluatedItems":false}},"unevaluatedProperties":true}`,
		"defaults":  `{"type":"object",` + item[1:] + `{"properties":{"x":{"default":[1,2,3]}}}}}}`,
		"names":     `{"type":"object",` + item[1:] + `{"propertyNames":{"enum":["a"]}}}},"propertyNames":{"enum":["a"]}}`,
		"each mark": `{"type":"object",` + item[1:] + `{"unevaluatedProperties":false}}}}`,
	} {
		s := schemas.MustCompile(text)
		for kind, body := range bodies {
			want, wrong := s.Validate([]byte(body))
			may, begun := s.Need([]byte(body)), s.Need([]byte(body))/8
			for memory := begun; ; memory *= 2 {
				var before, after runtime.MemStats
				runtime.ReadMemStats(&before)
				got, ok, err := s.ValidateWithin([]byte(body), memory)
				runtime.ReadMemStats(&after)
				// Most of what was allocated may be garbage: texts of violations that are not listed. size is for the copy of the body.
				if took := int64(after.TotalAlloc - before.TotalAlloc); took > 4*memory+size {
					t.Errorf("%s, %s: the check took %d bytes, and might take %d", name, kind, took, memory)
				}
				if !ok && memory > 16*may {
					t.Fatalf("%s, %s: %d bytes are not enough for it", name, kind, memory)
				}
				if !ok {
					continue
				}
				if string(got) != string(want) || fmt.Sprint(err) != fmt.Sprint(wrong) {
					t.Errorf("%s, %s: got %.100q, %v, want %.100q, %v", name, kind, got, err, want, wrong)
				}
				if memory == begun {
					t.Errorf("%s, %s: an eighth of what Need returns is enough", name, kind)
				}
				break
			}
		}
	}
}
