package main_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestNothingDue runs .ci/run in a fresh checkout in which no step is due, so that no step has built what the last part of .ci/run needs.
func TestNothingDue(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for _, folder := range []string{".", "../skips"} {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s has no Go files: %v", folder, err)
		}
		for _, file := range files {
			copyFile(t, file, filepath.Join(root, "test/steps", file))
		}
	}
	copyFile(t, "../../.ci/run", filepath.Join(root, ".ci/run"))
	for name, text := range map[string]string{".ci/steps.txt": "", ".gitignore": "/build/\n", "go.mod": "module example.com/x\n\ngo 1.26\n"} {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if out, err := exec.Command("git", "init", "--quiet", root).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	out, err := exec.Command("bash", filepath.Join(root, ".ci/run")).CombinedOutput()
	if err != nil || !strings.Contains(string(out), "all green in") {
		t.Errorf(".ci/run with nothing to run: %v\n%s", err, out)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.MkdirAll(filepath.Dir(to), 0o750)
	}
	if err == nil {
		err = os.WriteFile(to, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}
