package python

import (
	"os"
	"strings"
	"testing"
)

func TestRequirement(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		text, name string
		extras     string // extras that the requirement names
		used       string // extras with which the library is used
		want       bool
	}{
		{"foo", "foo", "", "", true},
		{" Foo.Bar_baz (>=1,<2)", "Foo.Bar_baz", "", "", true},
		{"foo[A, b_c]>=1", "foo", "a b-c", "", true},
		{"foo @ https://example.com/foo.whl?a;b", "foo", "", "", true},
		{"foo @ https://example.com/foo.whl ; python_version < '3'", "foo", "", "", false},
		{`foo; python_version >= "3.8"`, "foo", "", "", true},
		{`foo; python_version < "3.13"`, "foo", "", "", false},
		{`foo; python_version < "3.9"`, "foo", "", "", false},
		{`foo; python_full_version >= "3.13.1"`, "foo", "", "", true},
		{`foo; python_version == "3.*"`, "foo", "", "", true},
		{`foo; python_version ~= "3.11"`, "foo", "", "", true},
		{`foo; "3.8" <= python_version`, "foo", "", "", true},
		{`foo; sys_platform == "win32" or platform_system == "Windows"`, "foo", "", "", false},
		{`foo; sys_platform != "win32" and os_name == 'posix'`, "foo", "", "", true},
		{`foo; (sys_platform == "win32" or python_version > "3") and implementation_name == "cpython"`, "foo", "", "", true},
		{`foo; platform_machine in "x86_64 wasm32"`, "foo", "", "", true},
		{`foo; platform_machine not in "x86_64 wasm32"`, "foo", "", "", false},
		{`foo; extra == "Fast_er"`, "foo", "", "fast-er", true},
		{`foo; extra == "faster"`, "foo", "", "", false},
		{`foo; "faster" == extra and python_version > "3"`, "foo", "", "faster", true},
		{`foo; unknown == "x"`, "foo", "", "", true}, // a marker that is not understood is taken to hold
		{`foo; python_version`, "foo", "", "", true},
		{`foo; (python_version > "9"`, "foo", "", "", true},
	} {
		r, err := parseRequirement(test.text)
		if err != nil {
			t.Errorf("%s: %v", test.text, err)
			continue
		}
		if r.name != test.name || strings.Join(r.extras, " ") != test.extras {
			t.Errorf("%s: got %q with the extras %q, want %q with %q", test.text, r.name, r.extras, test.name, test.extras)
		}
		if got := r.applies(strings.Fields(test.used)); got != test.want {
			t.Errorf("%s with the extras %q: got %t, want %t", test.text, test.used, got, test.want)
		}
	}
	for _, text := range []string{"", "!", "-e .", "foo; !", "foo; 'x"} {
		if r, err := parseRequirement(text); err == nil {
			t.Errorf("%q: got %v, want an error", text, r)
		}
	}
}

// TestEngineSays compares the values for conditions with the Python from which the engine is built.
func TestEngineSays(t *testing.T) {
	t.Parallel()
	sources, err := os.ReadFile("../../../sdk/python/engine/sources.txt")
	if err != nil {
		t.Fatal(err)
	}
	full, _ := engineSays("python_full_version")
	if minor, _ := engineSays("python_version"); !strings.HasPrefix(full, minor+".") {
		t.Errorf("python_version is %s, and python_full_version %s", minor, full)
	}
	if !strings.Contains(string(sources), "_"+full+".orig") {
		t.Errorf("conditions are evaluated for Python %s, which sdk/python/engine/sources.txt does not name: change engineSays", full)
	}
}

func FuzzRequirement(f *testing.F) {
	for _, seed := range []string{"foo[a]>1; extra == 'a' and (python_version < '3')", "foo; ((((", "foo; not in", "foo; in in in or and", "foo; 'a' == \"", "a;\x00"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if r, err := parseRequirement(text); err == nil {
			r.applies(nil)
		}
	})
}
