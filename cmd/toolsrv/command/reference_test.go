package command_test

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
)

// TestReference compares docs/generated/commands.md with the commands' help. `go test ./cmd/toolsrv/command -run TestReference -update` writes it.
func TestReference(t *testing.T) {
	t.Parallel()
	const page = "../../../docs/generated/commands.md"
	var index, want strings.Builder
	found := 0
	var describe func(above ...string)
	describe = func(above ...string) {
		_, help, _ := run(append(above, "--help")...)
		_, list, _ := strings.Cut(help, "Available Commands:\n")
		list, _, _ = strings.Cut(list, "\n\n")
		for _, m := range regexp.MustCompile(`(?m)^  ([a-z]+) +(.*)$`).FindAllStringSubmatch(list, -1) {
			if m[1] == "help" || m[1] == "completion" {
				continue
			}
			found++
			words := append(slices.Clone(above), m[1])
			name := "toolsrv " + strings.Join(words, " ")
			code, text, _ := run(append(words, "--help")...)
			if code != 0 {
				t.Errorf("%s --help: exit code %d", name, code)
			}
			fmt.Fprintf(&index, "| [%s](#%s) | %s |\n", name, strings.ReplaceAll(name, " ", "-"), m[2])
			fmt.Fprintf(&want, "\n## %s\n\n```text\n%s\n```\n", name, strings.TrimSpace(text))
			describe(words...)
		}
	}
	describe()
	written := "# Commands and flags\n\nWhat `toolsrv help COMMAND` prints. A test of cmd/toolsrv/command writes this page (`-update`); [commands.md](../commands.md) shows the commands at work.\n\n| command | what it does |\n|---|---|\n" + index.String() + want.String()
	if found < 15 {
		t.Errorf("found only %d commands", found)
	}
	if *update {
		if err := os.WriteFile(page, []byte(written), 0o600); err != nil {
			t.Fatal(err)
		}
	} else if string(testkit.Read(t, page)) != written {
		t.Errorf("%s is not what the commands' help says: run this test with -update, and look at the diff", page)
	}
}
