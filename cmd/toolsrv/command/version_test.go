package command_test

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"
)

func TestVersion(t *testing.T) {
	t.Parallel()
	code, text, _ := run("version")
	if code != 0 {
		t.Errorf("exit code %d, want 0", code)
	}
	for _, want := range []string{"toolsrv ", "revision ", runtime.Version(), "wazero ", runtime.GOOS + "/" + runtime.GOARCH} {
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
	for _, member := range []string{"version", "revision", "modified", "go", "wazero", "os", "arch"} {
		if got[member] == nil || got[member] == "" {
			t.Errorf("--json: no %q in %s", member, text)
		}
	}
}

func TestVersionUsage(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"version", "now"}, {"version", "--yaml"}} {
		if code, stdout, _ := run(args...); code != 2 || stdout != "" {
			t.Errorf("toolsrv %q: exit code %d, standard output %q; want 2 and nothing", args, code, stdout)
		}
	}
}
