//go:build unix

package local_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/state/local"
)

// TestOwners refuses a directory and a file that others can change, and leaves both unchanged. Temporary files of a killed process are removed.
func TestOwners(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, ".state-left"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := open(t, dir).Close(); err != nil {
		t.Fatal(err)
	}
	if files, err := os.ReadDir(dir); len(files) != 1 || err != nil {
		t.Errorf("got %v, %v, want only the file of the state", files, err)
	}
	for path, modes := range map[string][2]os.FileMode{dir: {0o777, 0o700}, filepath.Join(dir, fileName): {0o622, 0o600}} {
		if err := os.Chmod(path, modes[0]); err != nil {
			t.Fatal(err)
		}
		if _, err := local.Open(dir, local.Options{}); err == nil || !strings.Contains(err.Error(), path) || errors.Is(err, local.ErrDamaged) {
			t.Errorf("%s with the mode %v: got %v", path, modes[0], err)
		}
		if err := os.Chmod(path, modes[1]); err != nil {
			t.Fatal(err)
		}
	}
	if err := open(t, dir).Close(); err != nil {
		t.Error(err)
	}
}

// TestNotWritable checks that the error says what to do about a directory that can't be made.
func TestNotWritable(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := local.Open(filepath.Join(file, "state"), local.Options{})
	if err == nil || !strings.Contains(err.Error(), "name a directory under [state] that this user can write to") {
		t.Errorf("got %v, want it to say what to do", err)
	}
}
