package toolsrv_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

var (
	mdHeading = regexp.MustCompile(`(?m)^#{1,6} (.+)$`)
	mdEntry   = regexp.MustCompile(`(?m)^(##|###) (.+)$`)
	mdLink    = regexp.MustCompile(`\[([^\]]+)\]\(([^)\s]+)\)`)
	mdCode    = regexp.MustCompile("(?ms)^```.*?^```$|`[^`\n]*\\]\\([^`\n]*`") // code, which could be taken for links or headings
)

// rationales are the files with the reasons, one in the folder of each part; the one in the root links to the others.
func rationales(t *testing.T) []string {
	t.Helper()
	all := []string{"RATIONALE.md"}
	for _, pattern := range []string{"*/RATIONALE.md", "internal/*/RATIONALE.md"} {
		parts, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, parts...)
	}
	return all
}

// TestRationaleContents checks that each RATIONALE.md begins with its contents: its themes and questions in order, each of which has an answer and is
// in no other file. `go test . -update` writes the contents.
func TestRationaleContents(t *testing.T) {
	t.Parallel()
	homes := map[string]string{}
	root := read(t, "RATIONALE.md")
	for _, file := range rationales(t) {
		if file != "RATIONALE.md" && !strings.Contains(root, "]("+filepath.ToSlash(file)+")") {
			t.Errorf("RATIONALE.md does not lead to %s", file)
		}
		text := read(t, file)
		start, rest, ok := strings.Cut(text, "\n## Contents\n")
		i := strings.Index(rest, "\n## ")
		if !ok || i < 0 {
			t.Fatalf(`%s has no "## Contents" before its themes`, file)
		}
		entries := rest[i:]
		var contents strings.Builder
		for _, match := range mdEntry.FindAllStringSubmatch(mdCode.ReplaceAllString(entries, ""), -1) {
			level, heading := match[1], match[2]
			if level == "###" {
				contents.WriteString("  ")
				if other := homes[heading]; other != "" {
					t.Errorf("%s and %s both ask %q", other, file, heading)
				}
				homes[heading] = file
			}
			fmt.Fprintf(&contents, "- [%s](#%s)\n", heading, anchor(heading))
			if _, text, _ := strings.Cut(entries, level+" "+heading+"\n\n"); text == "" || level == "###" && text[0] == '#' {
				t.Errorf("%s: %q has no answer", file, heading)
			}
		}
		if want := start + "\n## Contents\n\n" + contents.String() + entries; text != want {
			if !*update {
				t.Errorf("the contents of %s are not its headings: run `go test . -update`", file)
			} else if err := os.WriteFile(file, []byte(want), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	if n := len(homes); n < 60 || n > 95 {
		t.Errorf("found %d questions, want 60 to 95: keep those that maintainers still ask", n)
	}
}

// TestPagesAreShort limits what is written by hand in docs/ and in RATIONALE.md: say a thing once, in the page where readers look for it, and
// leave history to the commits. Lower the bounds when pages become shorter.
func TestPagesAreShort(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		what  string
		files []string
		most  int
	}{{"docs/*.md", pages, 205_200}, {"RATIONALE.md", rationales(t), 95_000}} {
		size := 0
		for _, file := range c.files {
			size += len(read(t, file))
		}
		if size == 0 || size > c.most {
			t.Errorf("%s: all together have %d bytes; the bound is %d", c.what, size, c.most)
		}
	}
}

// TestLinks makes sure that links from page to page lead somewhere.
func TestLinks(t *testing.T) {
	t.Parallel()
	pages := map[string]string{}
	for _, pattern := range []string{"*.md", "*/RATIONALE.md", "internal/*/RATIONALE.md", "docs/*.md", "docs/generated/*.md", "examples/*.md", "examples/*/*.md", "bench/*.md", "sdk/*/README.md", "testdata/*/*.md"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			pages[filepath.ToSlash(file)] = mdCode.ReplaceAllString(read(t, file), "")
		}
	}
	if len(pages) < 15 {
		t.Errorf("found only %d pages", len(pages))
	}
	for page, text := range pages {
		for _, link := range mdLink.FindAllStringSubmatch(text, -1) {
			file, fragment, hasFragment := strings.Cut(link[2], "#")
			if strings.Contains(file, ":") || strings.HasPrefix(file, "data") {
				continue // another site's
			}
			target := page
			if file != "" {
				target = filepath.ToSlash(filepath.Join(filepath.Dir(page), file))
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which does not exist", page, link[2])
				continue
			}
			if hasFragment && strings.HasSuffix(target, ".md") && !hasAnchor(pages[target], fragment) {
				t.Errorf("%s links to %s, but %s has no such heading", page, link[2], target)
			}
		}
	}
}

func hasAnchor(text, fragment string) bool {
	for _, match := range mdHeading.FindAllStringSubmatch(text, -1) {
		if anchor(match[1]) == fragment {
			return true
		}
	}
	return false
}

// anchor returns the name of a heading in links: lower case, hyphens for spaces, no punctuation.
func anchor(heading string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case r == '-' || r == '_' || unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		}
		return -1
	}, heading)
}
