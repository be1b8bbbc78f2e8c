package schemas_test

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/schemas"
	"github.com/toolsrv/toolsrv/internal/testkit"
)

// This test is not parallel, because it measures the heap of the whole process.
// Proves: Limits hold, one by one and in sum
func TestSize(t *testing.T) {
	if testing.Short() {
		t.Skip("compiles schemas for several seconds: not with -short")
	}
	if testkit.Race(t) {
		t.Skip("runs on one goroutine, and the race detector's memory would count")
	}
	for _, test := range []struct {
		name, text string
		most       int64 // times the text
	}{
		{"an enum of integers", `{"enum":[` + numbered(1000, "%d") + `]}`, 6},
		{"an enum of texts", `{"enum":[` + numbered(1000, `"word%d"`) + `]}`, 6},
		{"empty properties", `{"properties":{` + numbered(4000, `"p%d":{}`) + `}}`, 8},
		{"properties that differ", `{"properties":{` + numbered(4000, `"p%d":{"title":"%[1]d"}`) + `}}`, 12},
		{"objects within", `{"properties":{` + numbered(400, `"p%d":{"type":"object","properties":{"a%[1]d":{"type":"string"}},"required":["a%[1]d"]}`) + `}}`, 10},
		{"nested not", strings.Repeat(`{"not":`, 120) + `{}` + strings.Repeat(`}`, 120), 48},
		{"alternatives", `{"anyOf":[` + numbered(4000, `{"const":%d}`) + `]}`, 32},
		{"bounds", `{"anyOf":[` + numbered(2000, `{"minimum":%d,"maximum":%[2]d}`) + `]}`, 32},
		{"lists", `{"prefixItems":[` + numbered(2000, `{"maxItems":%d}`) + `]}`, 32},
		{"references", `{"anyOf":[` + numbered(2000, `{"$ref":"#/$defs/d%d"}`) + `],"$defs":{` + numbered(2001, `"d%d":{"maxLength":%[1]d}`) + `}}`, 24},
		{"required", `{"required":[` + numbered(20_000, `"a%d"`) + `]}`, 12},
		{"dependents", `{"dependentRequired":{` + numbered(4000, `"a%d":["b"]`) + `}}`, 16},
		{"defaults", `{"properties":{` + numbered(400, `"p%d":{"default":[`+strings.Repeat("1,", 50)+`%[1]d]}`) + `}}`, 40},
		{"types", `{"properties":{` + numbered(2000, `"p%d":{"type":["string","null"],"maxLength":%[1]d}`) + `}}`, 12},
		{"large patterns", `{"allOf":[` + numbered(20, `{"pattern":"^.{1,9%d}$"}`) + `]}`, 10_000},
		{"small patterns", `{"allOf":[` + numbered(500, `{"pattern":"^a%d$"}`) + `]}`, 200},
		{"patterns of words", `{"allOf":[` + numbered(300, `{"pattern":"^[a-z]+ [0-9]{1,3} (one|two|three) %d$"}`) + `]}`, 200},
		{"patterns of names", `{"patternProperties":{` + numbered(300, `"^a%d":{}`) + `}}`, 200},
		{"a small tool's", `{"type":"object","properties":{"city":{"type":"string","description":"Name of a city, in any language that people speak there.","maxLength":100},` +
			`"days":{"type":"integer","minimum":1,"maximum":10,"default":3},"unit":{"enum":["celsius","fahrenheit"]}},"required":["city"],"additionalProperties":false}`, 10},
	} {
		t.Run(test.name, func(t *testing.T) {
			text := json.RawMessage(test.text)
			copies := max(4, 200_000/len(text)) // so that the rest of the heap hardly matters
			all := make([]*schemas.Schema, copies)
			before := heap()
			for i := range all {
				s, err := schemas.Compile(append(json.RawMessage(nil), text...))
				if err != nil {
					t.Fatal(err)
				}
				all[i] = s
			}
			took := int64(heap()-before) / int64(copies)
			size := all[0].Size()
			runtime.KeepAlive(all)
			t.Logf("%d bytes of text: took %d, Size is %d", len(text), took, size)
			if took > size*5/4 || size > took*2 {
				t.Errorf("got Size() = %d, want about the %d bytes that the schema takes in the heap", size, took)
			}
			if most := test.most * int64(len(text)); took > most {
				t.Errorf("a text of %d bytes takes %d, want at most %d", len(text), took, most)
			}
		})
	}
}

func heap() uint64 {
	var stats runtime.MemStats
	for range 2 { // twice, since only swept memory counts as free
		runtime.GC()
	}
	runtime.ReadMemStats(&stats)
	return stats.HeapAlloc
}
