//go:build unix

package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
)

// askBash lets bash complete the words in its arguments, as if a person had pressed the tab key after them.
const askBash = `. "$1"; . <(toolsrv completion bash); shift
COMP_LINE="$*"; COMP_POINT=${#COMP_LINE}; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMP_TYPE=9
__start_toolsrv 2>/dev/null # compopt works at the prompt only
printf '%s\n' "${COMPREPLY[@]}"`

// askZsh lets zsh load its script as ~/.zshrc does, and name the completer of toolsrv. The completion itself only works at the prompt.
const askZsh = `autoload -U compinit && compinit -u -D && source <(toolsrv completion zsh) && whence -w _toolsrv && print -r -- $_comps[toolsrv]`

// TestCompletionZsh lets zsh load its script, also from the folder in which a package puts it.
func TestCompletionZsh(t *testing.T) {
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("starts processes one after another, so the race detector would only slow it down")
	}
	if _, err := exec.LookPath("zsh"); err != nil {
		t.Skipf("there is no zsh to ask: %v", err)
	}
	path := "PATH=" + filepath.Dir(binary) + string(os.PathListSeparator) + os.Getenv("PATH")
	script, err := command("completion", "zsh").Output()
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	put(t, filepath.Join(folder, "_toolsrv"), script)
	for name, ask := range map[string]string{
		"sourced":  askZsh,
		"packaged": `fpath=(` + folder + ` $fpath); autoload -U compinit && compinit -u -D && whence -w _toolsrv && print -r -- $_comps[toolsrv]`,
	} {
		cmd := exec.CommandContext(t.Context(), "zsh", "-f", "-c", ask)
		cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), path)
		if out, err := cmd.CombinedOutput(); err != nil || string(out) != "_toolsrv: function\n_toolsrv\n" {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

// TestCompletion completes words in real shells, in a folder with a tool, another file and a folder.
func TestCompletion(t *testing.T) {
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("starts processes one after another, so the race detector would only slow it down")
	}
	const bashCompletion = "/usr/share/bash-completion/bash_completion"
	dir := t.TempDir()
	for _, name := range []string{"a.wasm", "b.txt", "c/x"} {
		put(t, filepath.Join(dir, name), nil)
	}
	both := []string{"bash", "fish"} // this shell shows all files, also those that don't fit
	for _, c := range []struct {
		name   string
		line   []string
		want   []string
		shells []string
	}{
		{"a command", []string{"toolsrv", "buil"}, []string{"build"}, both},
		{"languages", []string{"toolsrv", "new", "greet", "--lang", ""}, []string{"go", "javascript", "python", "rust", "tinygo", "typescript"}, both},
		{"folders", []string{"toolsrv", "build", ""}, []string{"c"}, both[:1]},
		{"modules and folders", []string{"toolsrv", "inspect", ""}, []string{"a.wasm", "c"}, both[:1]},
	} {
		for _, shell := range c.shells {
			t.Run(shell+" "+c.name, func(t *testing.T) {
				t.Parallel()
				if _, err := exec.LookPath(shell); err != nil {
					t.Skipf("there is no %s to ask: %v", shell, err)
				}
				cmd := exec.CommandContext(t.Context(), "fish", "--no-config", "-c",
					"toolsrv completion fish | source; complete -C (string join ' ' -- $argv)", "--")
				if shell == "bash" {
					if _, err := os.Stat(bashCompletion); err != nil {
						t.Skipf("the package bash-completion is not installed: %v", err)
					}
					cmd = exec.CommandContext(t.Context(), "bash", "--norc", "-c", askBash, "bash", bashCompletion)
				}
				cmd.Args = append(cmd.Args, c.line...)
				cmd.Dir = dir
				cmd.Env = append(os.Environ(), "HOME="+t.TempDir(), "PATH="+filepath.Dir(binary)+string(os.PathListSeparator)+os.Getenv("PATH"))
				out, err := cmd.Output()
				if err != nil {
					t.Fatal(err)
				}
				var got []string
				for line := range strings.Lines(string(out)) {
					word, _, _ := strings.Cut(strings.TrimSpace(line), "\t")
					if word != "" {
						got = append(got, word)
					}
				}
				slices.Sort(got)
				if !slices.Equal(got, c.want) {
					t.Errorf("got %q, want %q", got, c.want)
				}
			})
		}
	}
}
