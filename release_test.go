package toolsrv_test

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestLicense checks that everybody who gets the repository, or a module or crate of it, also gets the licence. (The zip of a Go module below the
// root has the root's LICENSE if it has none of its own.)
func TestLicense(t *testing.T) {
	t.Parallel()
	license, err := os.ReadFile("LICENSE")
	if err != nil || !bytes.Contains(license, []byte("Apache License\n                           Version 2.0, January 2004")) {
		t.Fatalf("LICENSE is not Apache 2.0 (%v)", err)
	}
	const name = `license = "Apache-2.0"`
	crates := 0
	for workspace, pattern := range map[string]string{"Cargo.toml": "examples/*/Cargo.toml", "sdk/rust/Cargo.toml": "sdk/rust/*/Cargo.toml"} {
		if text := read(t, workspace); !strings.Contains(text, "\n"+name+"\n") {
			t.Errorf("%s does not contain %s", workspace, name)
		}
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("no %s (%v)", pattern, err)
		}
		for _, file := range files {
			text := read(t, file)
			if strings.Contains(text, "publish = false") || strings.Contains(text, "publish.workspace = true") {
				continue
			}
			crates++
			for _, key := range []string{"description", "license.workspace", "repository.workspace", "keywords.workspace", "categories.workspace", "readme"} {
				if !regexp.MustCompile(`(?m)^` + regexp.QuoteMeta(key) + ` = `).MatchString(text) {
					t.Errorf("%s, which is to be published, has no %s", file, key)
				}
			}
			if inside, err := os.ReadFile(filepath.Join(filepath.Dir(file), "LICENSE")); err != nil || !bytes.Equal(inside, license) {
				t.Errorf("the folder of %s does not hold the LICENSE (%v): ln -s ../../../LICENSE", file, err)
			}
		}
	}
	// npm packs no links, so sdk/js has a copy of the LICENSE.
	for file, keys := range map[string][]string{
		"sdk/js/package.json":       {`  "description": `, `  "license": "Apache-2.0",`, `  "repository": `, `  "keywords": `},
		"sdk/python/pyproject.toml": {`description = `, name, `license-files = ["LICENSE"]`, `keywords = `, `Repository = `},
	} {
		for _, key := range keys {
			if !strings.Contains(read(t, file), "\n"+key) {
				t.Errorf("%s, which is to be published, has no %s", file, key)
			}
		}
		if inside, err := os.ReadFile(filepath.Join(filepath.Dir(file), "LICENSE")); err != nil || !bytes.Equal(inside, license) {
			t.Errorf("the folder of %s does not hold the LICENSE (%v)", file, err)
		}
	}
	if link, err := os.Readlink("sdk/js/LICENSE"); err == nil {
		t.Errorf("sdk/js/LICENSE is a link to %s, which npm does not pack", link)
	}
	if crates != 2 {
		t.Errorf("%d crates are to be published, want toolsrv and toolsrv-macros", crates)
	}
}

// TestModulesInstall checks that `go install …/cmd/toolsrv@version` and `go get …/sdk/go` work: a go.mod with a replace or exclude
// directive can't be installed, and the SDK promises its users no dependencies.
func TestModulesInstall(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"go.mod", "sdk/go/go.mod"} {
		text := read(t, file)
		if directive := regexp.MustCompile(`(?m)^(replace|exclude)\b.*`).FindString(text); directive != "" {
			t.Errorf("%s: %s", file, directive)
		}
		if file == "sdk/go/go.mod" && strings.Contains(text, "require") {
			t.Errorf("%s requires other modules:\n%s", file, text)
		}
	}
}

func read(t *testing.T, file string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(text), "\r\n", "\n")
}

// TestRegistries checks that everything is fetched by name from the machine's registry: no recipe and no lock file has an address.
func TestRegistries(t *testing.T) {
	t.Parallel()
	var files []string
	for _, pattern := range []string{"Makefile", ".ci/*", "*/package-lock.json", "*/*/package-lock.json", "sdk/*/*.sh", "sdk/*/*/*.sh", "sdk/*/*/*.txt"} {
		found, err := filepath.Glob(pattern)
		if err != nil || len(found) == 0 {
			t.Fatalf("no %s (%v)", pattern, err)
		}
		files = append(files, found...)
	}
	address := regexp.MustCompile(`"resolved": "http[^"]*|https?://(registry\.|index\.|static\.|deb\.|snapshot\.|pypi\.|files\.|crates\.|proxy\.)\S*`)
	for _, file := range files {
		if strings.Contains(file, "node_modules/") {
			continue
		}
		if found := address.FindString(read(t, file)); found != "" {
			t.Errorf("%s names %s", file, found)
		}
	}
}
