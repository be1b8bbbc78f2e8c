package examples_test

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/toolfile"
)

var update = flag.Bool("update", false, "write docs/generated/functions.md")

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
	if found != 1 {
		t.Errorf("docs/abi.md has %d manifests, want 1", found)
	}
}

// sets are the files in which the functions that modules can import are registered.
var sets = []string{
	"internal/runtime/abi1/abi1.go", "internal/runtime/wasi/wasi.go", "internal/capability/http/http.go", "internal/capability/kv/kv.go", "internal/capability/secrets/secrets.go",
	"internal/capability/settings/settings.go", "internal/capability/tools/tools.go", "wasmtools/capability/answer/answer.go",
}

// TestFunctions compares docs/generated/functions.md with the functions that modules can import: with their types, and with the comments above their
// registration, which begin with the names of the parameters.
func TestFunctions(t *testing.T) {
	t.Parallel()
	type entry struct {
		params []string
		text   string
	}
	said := map[string]entry{}
	registered := regexp.MustCompile(`(?m)((?:^\t+//.*\n)+)^\t+(?:return hostabi\.Function\{Name: |\{Name: |function\()"(\w+)"`)
	whole := regexp.MustCompile(`(?m)^\t// What docs/generated/functions\.md says of the module:\n\t//\n((?:^\t//.*\n)+)`)
	indent, link := regexp.MustCompile(`(?m)^\t+// ?`), regexp.MustCompile(`\]\(([a-z/-]+\.md)`)
	for _, file := range sets {
		source := strings.ReplaceAll(string(testkit.Read(t, "../../"+file)), "\r\n", "\n")
		module := "answer"
		if m := regexp.MustCompile(`Module = "(\w+)"`).FindStringSubmatch(source); m != nil {
			module = m[1]
		}
		if m := whole.FindStringSubmatch(source); m != nil {
			said[module] = entry{text: link.ReplaceAllString(indent.ReplaceAllString(m[1], ""), "](../$1")}
		}
		for _, m := range registered.FindAllStringSubmatch(source, -1) {
			params, text, _ := strings.Cut(indent.ReplaceAllString(m[1], ""), "\n")
			params, ok := strings.CutPrefix(strings.TrimSuffix(params, ")"), "(")
			if !ok || text == "" {
				t.Errorf("%s: the comment above %s does not begin with the names of its parameters, as in (ptr, len)", file, m[2])
			}
			text = link.ReplaceAllString(text, "](../$1")
			said[module+"."+m[2]] = entry{strings.FieldsFunc(params, func(r rune) bool { return r == ',' || r == ' ' }), strings.ReplaceAll(text, "](../generated/", "](")}
		}
	}
	var b strings.Builder
	b.WriteString("# Host functions\n\nWhat modules can import, as [ABI 1](../abi.md#imports) has it, made from the code by `go test ./test/examples -run TestFunctions$ -update`. Pointers and lengths are unsigned.\n")
	answerRead := ""
	names := map[rune]string{'i': "i32", 'I': "i64", 'F': "f64"}
	for _, set := range toolfile.Imports() {
		fmt.Fprintf(&b, "\n## %s\n", set.Module)
		if e, ok := said[set.Module]; ok { // the functions of WASI are documented elsewhere
			b.WriteString("\n" + e.text)
			continue
		}
		for _, f := range set.Functions {
			module := set.Module
			if f.Name == "answer_read" { // this function is in each module
				module = "answer"
			}
			key := module + "." + f.Name
			e := said[key]
			if e.text == "" || len(e.params) != len(f.Params) {
				t.Errorf("%s has %d parameters, and a comment that names %q", key, len(f.Params), e.params)
				continue
			}
			var params []string
			for i, letter := range f.Params {
				params = append(params, e.params[i]+": "+names[letter])
			}
			result := "()"
			if f.Results != "" {
				result = names[rune(f.Results[0])]
			}
			text := fmt.Sprintf("\n### %s.%s\n\n`(%s) -> %s`\n\n%s", module, f.Name, strings.Join(params, ", "), result, e.text)
			if module == "answer" {
				answerRead = text
				continue
			}
			b.WriteString(text)
		}
	}
	b.WriteString("\n## Each module but toolsrv_v1\n" + strings.Replace(answerRead, "### answer.", "### ", 1))
	const page = "../../docs/generated/functions.md"
	if *update {
		if err := os.WriteFile(page, []byte(b.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if string(testkit.Read(t, page)) != b.String() {
		t.Error("docs/generated/functions.md is not what the code says: go test ./test/examples -run TestFunctions$ -update writes it")
	}
}
