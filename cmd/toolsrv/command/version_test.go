package command_test

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/script/engine"
)

func TestVersion(t *testing.T) {
	t.Parallel()
	code, text, _ := run("version")
	if code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	for _, want := range []string{"toolsrv ", "revision ", runtime.Version(), "wazero ", runtime.GOOS + "/" + runtime.GOARCH, "engines "} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in %q", want, text)
		}
	}

	if code, flag, _ := run("--version"); code != 0 || flag != text {
		t.Errorf("--version: got %d %q, want %q", code, flag, text)
	}

	code, text, _ = run("version", "--json")
	if code != 0 {
		t.Errorf("--json: exit code %d, want 0", code)
	}
	var got map[string]any
	if err := json.Unmarshal([]byte(text), &got); err != nil {
		t.Fatalf("--json: %v: %s", err, text)
	}
	for _, member := range []string{"version", "revision", "modified", "go", "wazero", "os", "arch", "engines"} {
		if got[member] == nil || got[member] == "" {
			t.Errorf("--json: no %q in %s", member, text)
		}
	}
}

// People who get the binary, or a tool that it built of a script, can read under which licences the interpreter in it is.
func TestVersionLicenses(t *testing.T) {
	t.Parallel()
	list, err := engine.Carried().List()
	if err != nil {
		t.Fatal(err)
	}
	code, text, _ := run("version", "--licenses")
	if code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	names := map[string][]string{"javascript": {"QuickJS-ng", "Fabrice Bellard", "wasi-libc"}, "python": {"PYTHON SOFTWARE FOUNDATION LICENSE", "zlib", "wasi-libc"}}
	for _, about := range list {
		for _, want := range append(names[about.Name], "The engine for "+about.Name+", "+about.Version) {
			if !strings.Contains(text, want) {
				t.Errorf("the licences of %s don't have %q", about.Name, want)
			}
		}
	}
}

func TestVersionUsage(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"version", "now"}, {"version", "--yaml"}, {"version", "--json", "--licenses"}} {
		if code, stdout, _ := run(args...); code != 2 || stdout != "" {
			t.Errorf("toolsrv %q: exit code %d, standard output %q; want 2 and nothing", args, code, stdout)
		}
	}
}
