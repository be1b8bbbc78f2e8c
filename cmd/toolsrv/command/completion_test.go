package command_test

import (
	"os/exec"
	"strings"
	"testing"
)

// TestCompletionReads lets each installed shell read its completion script. The tests of the program also use the completions.
func TestCompletionReads(t *testing.T) {
	t.Parallel()
	for shell, read := range map[string][]string{
		"bash":       {"bash", "-n"},
		"zsh":        {"zsh", "-n"},
		"fish":       {"fish", "-n"},
		"powershell": {"pwsh", "-NoProfile", "-NonInteractive", "-Command", "$errors = $null; $null = [System.Management.Automation.Language.Parser]::ParseInput(($input -join \"`n\"), [ref]$null, [ref]$errors); $errors"},
	} {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			code, stdout, stderr := run("completion", shell)
			if code != 0 || !strings.Contains(stdout, "toolsrv") || stderr != "" {
				t.Fatalf("exit code %d, %d bytes, standard error %q", code, len(stdout), stderr)
			}
			if shell == "powershell" {
				checkPowerShell(t, stdout)
			}
			if _, err := exec.LookPath(read[0]); err != nil {
				t.Skipf("there is no %s to read the script (for PowerShell, its words, brackets and strings were checked: Debian has no package of it)", read[0])
			}
			cmd := exec.CommandContext(t.Context(), read[0], read[1:]...)
			cmd.Stdin = strings.NewReader(stdout)
			if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
				t.Errorf("%q: %v\n%s", read, err, out)
			}
		})
	}
}

// checkPowerShell checks what is possible without PowerShell, which few machines have: the script registers a completer, and its brackets match.
func checkPowerShell(t *testing.T, script string) {
	t.Helper()
	if !strings.Contains(script, "Register-ArgumentCompleter -CommandName 'toolsrv'") {
		t.Error("it does not register a completer for toolsrv")
	}
	closers := map[byte]byte{')': '(', '}': '{', ']': '['}
	var open []byte
	quote := byte(0)
	for n, line := range strings.Split(script, "\n") {
		for i := 0; i < len(line); i++ {
			switch c := line[i]; {
			case quote != '\'' && c == '`': // the next character is escaped
				i++
			case quote != 0:
				if c == quote {
					quote = 0
				}
			case c == '\'' || c == '"':
				quote = c
			case c == '#':
				i = len(line)
			case c == '(' || c == '{' || c == '[':
				open = append(open, c)
			case closers[c] != 0:
				if len(open) == 0 || open[len(open)-1] != closers[c] {
					t.Fatalf("line %d has a closing %c without an opening one: %s", n+1, c, line)
				}
				open = open[:len(open)-1]
			}
		}
	}
	if len(open) > 0 || quote != 0 {
		t.Errorf("the brackets %q or a string are not closed", open)
	}
}

// TestCompletes completes words in the way that the scripts do. A directive says what a shell adds: 4 nothing, 8 files with the listed extensions, 16
// folders.
func TestCompletes(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		args []string
		want string
	}{
		{"commands", []string{"ne"}, "new\tMake a folder with a new tool, ready to build\n:4"},
		{"languages", []string{"new", "greet", "--lang", ""}, "go\ntinygo\nrust\npython\njavascript\ntypescript\n:4"},
		{"a name", []string{"new", ""}, ":4"},
		{"an SDK", []string{"new", "--sdk", ""}, ":16"},
		{"a folder or a script to build", []string{"build", ""}, "py\njs\nmjs\nts\nmts\n:8"},
		{"a second folder", []string{"build", "a", ""}, ":4"},
		{"an output", []string{"build", "-o", ""}, "wasm\n:8"},
		{"a folder or a script to follow", []string{"dev", ""}, "py\njs\nmjs\nts\nmts\n:8"},
		{"folders with packages", []string{"build", "--with", ""}, ":16"},
		{"a level", []string{"dev", "--log-level", ""}, "debug\ninfo\nwarn\nerror\n:4"},
		{"a log level of the server", []string{"openapi", "--log-level", ""}, "debug\ninfo\nwarn\nerror\n:4"},
		{"a configuration", []string{"openapi", "--config", ""}, "toml\n:8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			code, stdout, _ := run(append([]string{"__complete"}, c.args...)...)
			if got := strings.TrimSpace(stdout); code != 0 || got != c.want {
				t.Errorf("exit code %d, %q, want %q", code, got, c.want)
			}
		})
	}
}
