package toolfile_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/toolfile"
)

// TestReadFileOfOthers gives other kinds of files to commands that read a module: the error says which command is for such a file.
func TestReadFileOfOthers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	config := testkit.Put(t, dir, "served/toolsrv.toml", "")
	testkit.Put(t, dir, "plain/tool.go", "")
	for name, want := range map[string]string{
		filepath.Dir(config):        "name a script or a .wasm file in it; `toolsrv check --config " + config + "` checks everything",
		config:                      "is not a module: `toolsrv check --config " + config + "`",
		filepath.Join(dir, "plain"): "make one with `toolsrv build ",
	} {
		if _, err := toolfile.ReadFile(name); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", name, err, want)
		}
	}
}
