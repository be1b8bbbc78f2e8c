package toolsrv_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// An sdk describes the section for one language on the page of the SDKs' functions. Declarations are found by an expression whose groups are the
// comment above or below, and the declaration.
type sdk struct {
	name, page   string
	files        []string
	module       func(file string) string // the title of the section for a file
	declarations *regexp.Regexp
}

var sdks = []sdk{
	{"Go", "go.md", []string{"sdk/go/*.go", "sdk/go/http/*.go", "sdk/go/http/transport/*.go", "sdk/go/kv/*.go", "sdk/go/secrets/*.go", "sdk/go/settings/*.go", "sdk/go/tools/*.go", "sdk/go/files/*.go", "sdk/go/toolslog/*.go", "sdk/go/toolsrand/*.go", "sdk/go/toolsrvtest/*.go"},
		func(file string) string { return filepath.ToSlash(filepath.Dir(file)) },
		regexp.MustCompile(`(?m)(?P<says>(?:^//.*\n)+)^(?P<is>type [A-Z]\w*|func (?:\(\w+ \*?[A-Z][\w\[\]]*\) )?[A-Z][^\n]*? \{)`)},
	{"Rust", "rust.md", []string{"sdk/rust/toolsrv/src/call.rs", "sdk/rust/toolsrv/src/clock.rs", "sdk/rust/toolsrv/src/error.rs", "sdk/rust/toolsrv/src/failure.rs", "sdk/rust/toolsrv/src/http.rs", "sdk/rust/toolsrv/src/kv.rs", "sdk/rust/toolsrv/src/random.rs", "sdk/rust/toolsrv/src/secrets.rs", "sdk/rust/toolsrv/src/settings.rs", "sdk/rust/toolsrv/src/testing.rs", "sdk/rust/toolsrv/src/testing/world.rs", "sdk/rust/toolsrv/src/tools.rs"},
		func(file string) string { return strings.TrimSuffix(filepath.Base(file), ".rs") },
		regexp.MustCompile(`(?m)(?P<says>(?:^ *///.*\n)+)(?P<marks>(?:^ *#\[.*\n)*)^ *pub (?P<is>(?:struct|trait|enum) \w+|fn [^{]+)`)},
	{"Python", "python.md", []string{"sdk/python/toolsrv/_*.py", "sdk/python/toolsrv/[a-z]*.py"},
		func(file string) string {
			if name := strings.TrimSuffix(filepath.Base(file), ".py"); name[0] != '_' {
				return "toolsrv." + name
			}
			return "toolsrv"
		},
		regexp.MustCompile(`(?ms)^(?P<is>class [A-Z]\w*|def [A-Za-z]\w*\((?:\n?[^\n])*?\n?\)[^\n]*?)(?:\([^)\n]*\))?:\n    """(?P<says>.*?)"""`)},
	{"JavaScript", "javascript.md", []string{"sdk/js/index.d.ts", "sdk/js/files.d.ts", "sdk/js/kv.d.ts", "sdk/js/secrets.d.ts", "sdk/js/settings.d.ts", "sdk/js/testing.d.ts", "sdk/js/tools.d.ts"},
		func(file string) string {
			return strings.NewReplacer("toolsrv:index", "toolsrv", "toolsrv:testing", "toolsrv/testing").Replace("toolsrv:" + strings.TrimSuffix(filepath.Base(file), ".d.ts"))
		},
		regexp.MustCompile(`(?ms)/\*\*(?P<says>(?:[^*]|\*[^/])*)\*/\n(?:export |declare )+(?P<is>(?:class|interface|const) \w+|function .*?;$)`)},
}

// TestSDKPage compares docs/generated/sdk.md with the comments of everything that authors of tools import. `go test . -update` writes the page.
func TestSDKPage(t *testing.T) {
	t.Parallel()
	const page = "docs/generated/sdk.md"
	python := map[string]bool{} // the exports of toolsrv's private modules
	for _, m := range regexp.MustCompile(`(?m)^    "(\w+)",$`).FindAllStringSubmatch(read(t, "sdk/python/toolsrv/__init__.py"), -1) {
		python[m[1]] = true
	}
	usual := regexp.MustCompile(`^func \(.*\) (?:Error|Err|Unwrap|String|MarshalJSON|Done|Deadline|Value|RoundTrip)\(`) // methods of the standard library's interfaces
	lint := regexp.MustCompile(`# noqa.*`)
	marks := regexp.MustCompile(`(?m)^[ \t]*(?://[/!]?|\*)[ \t]?`)
	var want strings.Builder
	want.WriteString("# The SDKs' functions\n\nWhat authors of tools import, with the first sentence of its documentation. `go test . -update` writes this page from the SDKs' sources.\n")
	for _, language := range sdks {
		fmt.Fprintf(&want, "\n## %s\n\n[%s](../%s) shows them at work.\n", language.name, language.page, language.page)
		found, module := 0, ""
		for _, pattern := range language.files {
			files, err := filepath.Glob(pattern)
			if err != nil || len(files) == 0 {
				t.Fatalf("%s: %v, %v", pattern, files, err)
			}
			for _, file := range files {
				if strings.HasSuffix(file, "_test.go") {
					continue
				}
				group := func(m []string, name string) string {
					if i := language.declarations.SubexpIndex(name); i >= 0 {
						return m[i]
					}
					return ""
				}
				for _, m := range language.declarations.FindAllStringSubmatch(read(t, file), -1) {
					is := strings.TrimSuffix(strings.Join(strings.Fields(lint.ReplaceAllString(group(m, "is"), "")), " "), " {")
					says, _, _ := strings.Cut(strings.TrimSpace(marks.ReplaceAllString(group(m, "says"), "")), "\n\n")
					says = strings.Join(strings.Fields(says), " ")
					name := strings.FieldsFunc(is, func(r rune) bool { return r == ' ' || r == '(' })
					if strings.Contains(group(m, "marks"), "doc(hidden)") || usual.MatchString(is) || language.module(file) == "toolsrv" && language.name == "Python" && !python[name[1]] {
						continue
					}
					if of := language.module(file); of != module {
						module = of
						fmt.Fprintf(&want, "\n### %s\n\n", of)
					}
					if i := strings.Index(says, ". "); i >= 0 {
						says = says[:i+1]
					}
					says = strings.TrimSuffix(says, ":")
					fmt.Fprintf(&want, "- `%s`: %s\n", strings.TrimSuffix(is, ";"), says)
					found++
				}
			}
		}
		if found < 15 {
			t.Errorf("%s: found only %d names", language.name, found)
		}
	}
	if *update {
		if err := os.WriteFile(page, []byte(want.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	} else if read(t, page) != want.String() {
		t.Errorf("%s is not what the SDKs' comments say: run `go test . -update`, and look at the diff", page)
	}
}
