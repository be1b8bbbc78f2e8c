package command_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
)

// TestManPages writes the pages, checks the text of each command, and lets a formatter read them if there is one.
func TestManPages(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "man1")
	if code, stdout, stderr := run("manpages", dir); code != 0 || stdout+stderr != "" {
		t.Fatalf("exit code %d, %s%s", code, stdout, stderr)
	}
	pages, err := filepath.Glob(filepath.Join(dir, "*.1"))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, page := range pages {
		names = append(names, strings.TrimSuffix(filepath.Base(page), ".1"))
	}
	for _, name := range []string{"toolsrv", "toolsrv-init", "toolsrv-up", "toolsrv-openapi", "toolsrv-completion", "toolsrv-completion-bash", "toolsrv-licenses"} {
		if !slices.Contains(names, name) {
			t.Errorf("there is no page %s among %q", name, names)
		}
	}
	macro := regexp.MustCompile(`^\.(TH|SH|B|BR|PP|TP|EX|EE|br)( |$)`)
	for _, page := range pages {
		text := string(testkit.Read(t, page))
		for line := range strings.Lines(text) {
			if line = strings.TrimSuffix(line, "\n"); (strings.HasPrefix(line, ".") || strings.HasPrefix(line, "'")) && !macro.MatchString(line) {
				t.Errorf("%s: a line would be taken for a macro: %s", page, line)
			}
		}
		name := strings.TrimSuffix(filepath.Base(page), ".1")
		_, help, _ := run(append(strings.Split(name, "-")[1:], "--help")...)
		for _, flag := range regexp.MustCompile(`(?m)^ {2,6}(?:-\w, |    )(--[a-z-]+)`).FindAllStringSubmatch(help, -1) {
			if !strings.Contains(text, strings.ReplaceAll(flag[1], "-", `\-`)) {
				t.Errorf("%s does not have %s", name, flag[1])
			}
		}
	}
	if text := string(testkit.Read(t, dir, "toolsrv-openapi.1")); !strings.Contains(text, `.B toolsrv serve`) || !strings.Contains(text, `\-\-auth\-tokens\-file`) {
		t.Errorf("the page of openapi has neither its other name nor its flags:\n%s", text)
	}
	formatters := [][]string{{"mandoc", "-T", "lint", "-W", "error"}, {"groff", "-man", "-T", "ascii", "-ww", "-z"}}
	i := slices.IndexFunc(formatters, func(f []string) bool { _, err := exec.LookPath(f[0]); return err == nil })
	if i < 0 {
		t.Skip("there is neither mandoc nor groff to read the pages")
	}
	cmd := exec.CommandContext(t.Context(), formatters[i][0], append(formatters[i][1:], pages...)...)
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("%s: %v\n%s", formatters[i][0], err, out)
	}
}

func TestManPagesFails(t *testing.T) {
	t.Parallel()
	file := testkit.Put(t, t.TempDir(), "file", "")
	for _, c := range []struct {
		args []string
		code int
	}{{nil, 2}, {[]string{""}, 2}, {[]string{"a", "b"}, 2}, {[]string{file}, 1}} {
		if code, stdout, _ := run(append([]string{"manpages"}, c.args...)...); code != c.code || stdout != "" {
			t.Errorf("%q: exit code %d, %q; want %d", c.args, code, stdout, c.code)
		}
	}
	if _, err := os.Stat("a"); err == nil {
		t.Error("a refused command has made a folder")
	}
}
