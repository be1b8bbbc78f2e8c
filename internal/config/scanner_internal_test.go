package config

import (
	"strings"
	"testing"
	"time"

	"github.com/pelletier/go-toml/v2"

	"github.com/toolsrv/toolsrv/internal/textfile"
)

// FuzzScan compares the scanner with the decoder: the scanner must have found everything that the decoder finds in a file, so that it was counted and
// has a place.
func FuzzScan(f *testing.F) {
	for _, text := range []string{
		"a = 1\n[b]\nc.d = [1, {e = 'x', \"f.g\" = 2.5}]\n[[h]]\ni = 1979-05-27 07:32:00\n[[h]]\n[h.j]\nk = \"\"\"\n\"\"\"\"\"\n",
		"'' = 1\n\"\\u00e9\" = ''''a'''''\n[\"x y\" . z] # ]\nw = [ # [\n[], [[]],\n]\n", "a = \"\\\"#\" # \"\nb = '\\'\n", "[[a]]\n[[a.b]]\nc={}\n[[a.b]]\n",
		"a = \"\"\"\\\"\"\"\\\\\"\"\"\nb = 1e-5\r\nc = +inf", "_a-1 = true\n[a]\n[b.c]\n[b]",
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		s := scanner{name: "x", text: []byte(text)}
		var values map[string]any
		if s.scan() != nil || toml.Unmarshal(s.text, &values) != nil {
			return
		}
		keys := 0
		var walk func(path string, value any)
		walk = func(path string, value any) {
			offset, ok := s.offsets[path]
			if path != "" && (!ok || offset >= len(text) || strings.ContainsRune(" \t\r\n#,=", rune(text[offset]))) {
				t.Fatalf("%q: %q is at %d, %v", text, path, offset, ok)
			}
			switch value := value.(type) {
			case map[string]any:
				for name, v := range value {
					keys++
					walk(join(path, name), v)
				}
			case []any:
				for i, v := range value {
					walk(index(path, i), v)
				}
			}
		}
		walk("", values)
		if s.keys < keys {
			t.Errorf("%q: counted %d keys of %d", text, s.keys, keys)
		}
	})
}

// TestScanIsLinear scans many strings without an end, each of which could make the scanner read the whole rest of the text.
func TestScanIsLinear(t *testing.T) {
	t.Parallel()
	for _, unit := range []string{"\"\"\"\n\\", `"\`, `'''\`, "'\n", "\"\n", "\"\"\"\\", `""`, "=", "{", "[", "\n[[", "."} {
		s := scanner{text: []byte("a=" + strings.Repeat(unit, (textfile.Max-2)/len(unit)))}
		start := time.Now()
		_ = s.scan() // the decoder will report what is wrong
		if d := time.Since(start); d > time.Minute {
			t.Errorf("%q: took %v", unit, d)
		}
	}
}
