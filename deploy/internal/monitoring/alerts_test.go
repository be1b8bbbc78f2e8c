package monitoring_test

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/generated/alerts.md")

// TestAlertsPage checks the page of alerts against the rules: each alert has its summary, and the comment above the rule, which says what to do.
func TestAlertsPage(t *testing.T) {
	t.Parallel()
	const page, source = "../../../docs/generated/alerts.md", "../../../deploy/helm/toolsrv/files/rules.yaml"
	read := func(name string) string {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(content)
	}
	rules := read(source)
	var b strings.Builder
	b.WriteString("# Alerts\n\nWhat to do about each of the [alerts](../operations.md#alerts). Written from [the rules](../../deploy/helm/toolsrv/files/rules.yaml) by `go test ./internal/monitoring -update` in `deploy`.\n")
	_, parts, ok := strings.Cut(rules, "    rules:\n")
	if !ok {
		t.Fatal("there are no rules")
	}
	comment := regexp.MustCompile(`(?m)^ +# ?(.*)\n`)
	said := ""
	for _, rule := range strings.SplitAfter(parts, "\n") {
		name, begins := strings.CutPrefix(strings.TrimSpace(rule), "- alert: ")
		switch {
		case comment.MatchString(rule):
			said += strings.TrimSpace(comment.ReplaceAllString(rule, "$1")) + " "
		case begins:
			if said == "" {
				t.Errorf("nothing above %s says what to do", name)
			}
			_, of, _ := strings.Cut(parts, "- alert: "+name+"\n")
			summary := regexp.MustCompile(`summary: (.+)`).FindStringSubmatch(of)
			severity := regexp.MustCompile(`severity: (\w+)`).FindStringSubmatch(of)
			if summary == nil || severity == nil {
				t.Fatalf("%s has no summary or no severity", name)
			}
			fmt.Fprintf(&b, "\n## %s\n\n*%s (%s).* %s\n", name, strings.Trim(summary[1], `"`), severity[1], strings.TrimSpace(said))
			said = ""
		}
	}
	text := regexp.MustCompile(`\]\(([a-z])`).ReplaceAllString(b.String(), "](../$1")
	text = strings.NewReplacer("](../generated/", "](").Replace(text)
	if *update {
		if err := os.WriteFile(page, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if read(page) != text {
		t.Errorf("docs/generated/alerts.md is not what the rules say: go test ./internal/monitoring -update in deploy writes it")
	}
}
