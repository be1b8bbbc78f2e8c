package toolfile

import (
	"testing"

	"github.com/toolsrv/toolsrv/internal/schemas"
)

// TestFormatsAreChecked checks the list of formats against those that a server checks, with a text that fits none of them.
func TestFormatsAreChecked(t *testing.T) {
	t.Parallel()
	for _, format := range formats {
		s, err := schemas.Compile([]byte(`{"format":"` + format + `"}`))
		if err != nil {
			t.Fatalf("%s: %v", format, err)
		}
		if err := s.Check([]byte(`"%{( "`)); err == nil {
			t.Errorf("%s: got no error, so nobody checks this format", format)
		}
	}
}

func TestMeant(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{
		"minimum":                       "",
		"minimun":                       "minimum",
		"mnimum":                        "minimum",
		"minimumm":                      "minimum",
		"requierd":                      "required",
		"max_length":                    "maxLength",
		"additional properties":         "additionalProperties",
		"mninum":                        "",
		"x":                             "",
		"nto":                           "", // not
		"typ":                           "type",
		"comment":                       "$comment",
		"additionalPropertiesOfThisOne": "",
	} {
		if got := meant(name, keywords); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}
