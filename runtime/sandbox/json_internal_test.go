package sandbox

import (
	"encoding/json"
	"strings"
	"testing"
)

// FuzzJSON compares what guests may answer with what the standard library takes for JSON.
func FuzzJSON(f *testing.F) {
	for _, seed := range []string{
		``, ` `, `{}`, `[]`, `{"a":1}`, `{"a":[1,2,{"b":null}],"c":true}`, `[1,]`, `[,1]`, `{"a"}`, `{"a":}`, `{,}`, `{"a":1,}`, `[1 2]`, `1 2`, `{}]`,
		`-`, `-0`, `01`, `0.`, `.1`, `1e`, `1e+`, `1E-5`, `-1.5e3`, `+1`, `tru`, `true`, `truex`, `nul`, `false`, `NaN`,
		`"`, `""`, `"a`, `"\`, `"\"`, `"\""`, `"\u12"`, `"\u12zz"`, `"\uD800"`, `"\x"`, "\"\x00\"", "\"\n\"", "\"\x7f\"", `"1234567"`, `"12345678"`, `"123456789"`,
		`"1234567\n89012345\"6789"`, "\"1234567\x1f\"", `"äöüß€"`, "\"\xff\"", ` [ 1 , { "a" : "b" } ] `, "\v1", `{"a" 1}`, `["a":1]`, `{1:2}`, `{"a":1]`, `[1}`,
		strings.Repeat("[", 1000) + strings.Repeat("]", 1000), strings.Repeat(`{"a":`, 63) + "1" + strings.Repeat("}", 63), strings.Repeat(`[{"a":`, 64) + "[]" + strings.Repeat("}]", 64),
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		end, depth := scanJSON(text)
		if depth > maxDepth {
			if n := strings.Count(string(text), "[") + strings.Count(string(text), "{"); n <= maxDepth {
				t.Errorf("nested %d deep by %d brackets", depth, n)
			}
			return
		}
		if got, want := end == len(text), json.Valid(text); got != want {
			t.Errorf("%q: got %t, want %t", text, got, want)
		}
	})
}

func BenchmarkJSON(b *testing.B) {
	for name, text := range map[string]string{
		"text":    `{"a":"` + strings.Repeat("some words of text ", 1000) + `"}`,
		"numbers": `[` + strings.Repeat(`12.5,`, 4000) + `1]`,
		"records": `[` + strings.Repeat(`{"name":"some name","price":12.5,"tags":["a","b"]},`, 400) + `{}]`,
	} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if err := checkJSON([]byte(text)); err != nil {
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
