package command_test

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
)

// TestReference holds docs/generated/commands.md to the commands' help. `go test ./cmd/toolsrv/command -run TestReference -update` writes it.
func TestReference(t *testing.T) {
	t.Parallel()
	const page = "../../../docs/generated/commands.md"
	_, help, _ := run("--help")
	_, list, _ := strings.Cut(help, "Available Commands:\n")
	list, _, _ = strings.Cut(list, "\n\n")
	var want strings.Builder
	want.WriteString("# Commands and flags\n\nWhat `toolsrv help COMMAND` prints. A test of cmd/toolsrv/command writes this page (`-update`); [commands.md](../commands.md) shows the commands at work.\n")
	found := 0
	for _, m := range regexp.MustCompile(`(?m)^  ([a-z]+) `).FindAllStringSubmatch(list, -1) {
		if name := m[1]; name != "help" && name != "completion" {
			found++
			code, text, _ := run(name, "--help")
			if code != 0 {
				t.Errorf("toolsrv %s --help: exit code %d", name, code)
			}
			fmt.Fprintf(&want, "\n## toolsrv %s\n\n```text\n%s\n```\n", name, strings.TrimSpace(text))
		}
	}
	if found < 15 {
		t.Errorf("found %d commands only", found)
	}
	if *update {
		if err := os.WriteFile(page, []byte(want.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	} else if string(testkit.Read(t, page)) != want.String() {
		t.Errorf("%s is not what the commands' help says: run this test with -update, and look at the diff", page)
	}
}
