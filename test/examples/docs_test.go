package examples_test

import (
	"encoding/json"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/toolfile"
)

// TestManifestsOfDocs parses the manifests of docs/abi.md.
func TestManifestsOfDocs(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/abi.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, block := range regexp.MustCompile("(?s)```json\n(.*?)```").FindAllSubmatch(page, -1) {
		if !json.Valid(block[1]) {
			t.Errorf("docs/abi.md: this is not valid JSON:\n%s", block[1])
		}
		if strings.Contains(string(block[1]), `"abi"`) {
			found++
			if _, err := toolfile.ParseManifest(block[1]); err != nil {
				t.Errorf("docs/abi.md: %v in the manifest\n%s", err, block[1])
			}
		}
	}
	if found != 2 {
		t.Errorf("docs/abi.md has %d manifests, want 2", found)
	}
}

// TestFunctionsOfDocs holds the functions in the tables of docs/abi.md, with their types, to those that modules can import.
func TestFunctionsOfDocs(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/abi.md")
	if err != nil {
		t.Fatal(err)
	}
	_, imports, _ := strings.Cut(strings.ReplaceAll(string(page), "\r\n", "\n"), "\n## Imports\n")
	imports, _, _ = strings.Cut(imports, "\n## ")
	letters := strings.NewReplacer("i32", "i", "i64", "I", "f64", "F")
	types := func(written string) string {
		return letters.Replace(strings.Join(regexp.MustCompile(`\b(?:i32|i64|f64)\b`).FindAllString(written, -1), ""))
	}
	told, module := map[string]string{}, "toolsrv_v1"
	for _, row := range regexp.MustCompile("(?m)^\\|(?: (?:(`\\w+`|each of them) )?\\|)? `(\\w+)` \\| `(\\(.*?) -> (.*?)` \\|").FindAllStringSubmatch(imports, -1) {
		if row[1] != "" {
			module = strings.Trim(row[1], "`")
		}
		told[module+"."+row[2]] = types(row[3]) + " -> " + types(row[4])
	}
	for _, set := range toolfile.Imports() {
		if !strings.HasPrefix(set.Module, "toolsrv_") {
			continue // WASI has its own documents
		}
		for _, f := range set.Functions {
			name := set.Module + "." + f.Name
			if f.Name == "answer_read" {
				name = "each of them." + f.Name
			}
			if want := f.Params + " -> " + f.Results; told[name] != want {
				t.Errorf("docs/abi.md says of %s %q, want %q", name, told[name], want)
			}
			if f.Name != "answer_read" {
				delete(told, name)
			}
		}
	}
	delete(told, "each of them.answer_read")
	for name := range told {
		t.Errorf("docs/abi.md has a function %s, which no module can import", name)
	}
}
