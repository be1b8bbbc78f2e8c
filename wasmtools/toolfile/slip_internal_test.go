package toolfile

import (
	"testing"

	"github.com/toolsrv/toolsrv/wasmtools/schema"
)

// TestFormatsAreChecked holds the list of formats to those that a server checks: the text has none of them.
func TestFormatsAreChecked(t *testing.T) {
	t.Parallel()
	for _, format := range formats {
		s, err := schema.Compile([]byte(`{"format":"` + format + `"}`))
		if err != nil {
			t.Fatalf("%s: %v", format, err)
		}
		if err := s.Check([]byte(`"%{( "`)); err == nil {
			t.Errorf("%s: got no error, want one: nobody checks it", format)
		}
	}
}

func TestOneSlip(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"minimum", "minimum", true},
		{"minimun", "minimum", true},
		{"mnimum", "minimum", true},
		{"minimumm", "minimum", true},
		{"requierd", "required", true},
		{"", "a", true},
		{"", "", true},
		{"", "ab", false},
		{"ba", "ab", true},
		{"bac", "abd", false},
		{"mninum", "minimum", false},
		{"maximum", "minimum", false},
	} {
		if got := oneSlip(c.a, c.b); got != c.want {
			t.Errorf("%q and %q: got %t, want %t", c.a, c.b, got, c.want)
		}
		if got := oneSlip(c.b, c.a); got != c.want {
			t.Errorf("%q and %q: got %t, want %t", c.b, c.a, got, c.want)
		}
	}
}
