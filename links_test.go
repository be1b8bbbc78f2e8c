package toolsrv_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"
)

var (
	mdHeading = regexp.MustCompile(`(?m)^#{1,6} (.+)$`)
	mdEntry   = regexp.MustCompile(`(?m)^## (.+)$`)
	mdLink    = regexp.MustCompile(`\[([^\]]+)\]\(([^)\s]+)\)`)
	mdCode    = regexp.MustCompile("(?ms)^```.*?^```$|`[^`\n]*\\]\\([^`\n]*`") // that could be taken for links or headings
)

// TestRationaleContents makes sure that the table of contents of RATIONALE.md has every entry, once, by its heading.
func TestRationaleContents(t *testing.T) {
	t.Parallel()
	text := read(t, "RATIONALE.md")
	_, rest, ok := strings.Cut(text, "\n## Contents\n")
	contents, entries, ok2 := strings.Cut(rest, "\n## ")
	if !ok || !ok2 {
		t.Fatal(`RATIONALE.md has no "## Contents" before its entries`)
	}
	listed := map[string]int{}
	for _, link := range mdLink.FindAllStringSubmatch(contents, -1) {
		if link[2] != "#"+anchor(link[1]) {
			t.Errorf("the contents link %q to %s, want #%s", link[1], link[2], anchor(link[1]))
		}
		listed[link[1]]++
	}
	for _, match := range mdEntry.FindAllStringSubmatch("## "+entries, -1) {
		if heading := match[1]; listed[heading] == 0 {
			t.Errorf("the contents of RATIONALE.md lack an entry; add to the theme that fits:\n- [%s](#%s)", heading, anchor(heading))
		} else if listed[heading] > 1 {
			t.Errorf("the contents of RATIONALE.md have %q %d times", heading, listed[heading])
		}
	}
}

// TestLinks makes sure that links from page to page lead somewhere, and that each page of docs/ leads to the reasons in
// RATIONALE.md.
func TestLinks(t *testing.T) {
	t.Parallel()
	pages := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md", "examples/*.md", "examples/*/*.md", "bench/*.md", "sdk/*/README.md", "testdata/*/*.md"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			pages[filepath.ToSlash(file)] = mdCode.ReplaceAllString(read(t, file), "")
		}
	}
	if len(pages) < 15 {
		t.Errorf("found %d pages only", len(pages))
	}
	for page, text := range pages {
		reasons := false
		for _, link := range mdLink.FindAllStringSubmatch(text, -1) {
			file, fragment, hasFragment := strings.Cut(link[2], "#")
			if strings.Contains(file, ":") || strings.HasPrefix(file, "data") {
				continue // another site's
			}
			target := page
			if file != "" {
				target = filepath.ToSlash(filepath.Join(filepath.Dir(page), file))
			}
			reasons = reasons || target == "RATIONALE.md"
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s, which is not there", page, link[2])
				continue
			}
			if hasFragment && strings.HasSuffix(target, ".md") && !hasAnchor(pages[target], fragment) {
				t.Errorf("%s links to %s, but %s has no such heading", page, link[2], target)
			}
		}
		if strings.HasPrefix(page, "docs/") && !reasons {
			t.Errorf("%s doesn't link to RATIONALE.md: say at its end where the reasons are", page)
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

// anchor returns what a heading is called in links: lower case, hyphens for spaces, no punctuation.
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
