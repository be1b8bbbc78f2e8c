package settings_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/capability/settings"
)

const declared = `{"type":"object","additionalProperties":false,"required":["token"],"properties":{
	"token":{"type":"string","minLength":4},"units":{"enum":["metric","imperial"],"default":"metric"},
	"limits":{"type":"object","default":{},"properties":{"most":{"type":"integer","default":5}}}}}`

// TestApply checks settings against what a module declares. Errors name the key and never quote a value, since settings may be private.
// Proves: Nothing without a grant
func TestApply(t *testing.T) {
	t.Parallel()
	s, err := settings.Compile(json.RawMessage(declared))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct{ name, granted, want, wrong string }{
		{"defaults", `{"token":"abcd"}`, `{"token":"abcd","units":"metric","limits":{"most":5}}`, ""},
		{"all given", `{"units":"imperial","limits":{"most":7},"token":"hunter22"}`, `{"units":"imperial","limits":{"most":7},"token":"hunter22"}`, ""},
		{"none granted", "", "", "token: Field required"},
		{"required", `{}`, "", "token: Field required"},
		{"wrong value", `{"token":"abcd","units":"hunter22"}`, "", "units: "},
		{"wrong type", `{"token":"abcd","limits":{"most":"hunter22"}}`, "", "limits.most: "},
		{"short", `{"token":"hnt"}`, "", "token: "},
		{"unknown key", `{"token":"abcd","unit":"hunter22"}`, "", "unit: "},
		{"two", `{"token":"abcd","units":1,"limits":1}`, "", "and 1 more"},
		{"not an object", `"hunter22"`, "", "object"},
	} {
		granted := json.RawMessage(test.granted)
		if test.granted == "" {
			granted = nil
		}
		got, err := s.Apply(granted)
		switch {
		case test.wrong == "" && (err != nil || string(got) != test.want):
			t.Errorf("%s: got %s, %v, want %s", test.name, got, err, test.want)
		case test.wrong != "" && (err == nil || !strings.Contains(err.Error(), test.wrong) || strings.Contains(err.Error(), "hunter22") || strings.Contains(err.Error(), "hnt")):
			t.Errorf("%s: got %s, %v, want an error with %q and without a value", test.name, got, err, test.wrong)
		}
	}
	for _, bad := range []string{`{"type":"string"}`, `{"type":"object","properties":{"a":{"$ref":"https://example.com/s"}}}`, `[]`, `{`} {
		if _, err := settings.Compile(json.RawMessage(bad)); err == nil {
			t.Errorf("%s is accepted as a schema of settings", bad)
		}
	}
}
