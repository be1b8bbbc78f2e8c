package catalog_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
)

// TestRefusedNoLonger checks that the log reports the end of a refusal once, as it does the beginning: the file is served, or it is gone.
func TestRefusedNoLonger(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	testkit.Put(t, directory, "mended.wasm", []byte("no module"))
	testkit.Put(t, directory, "removed.wasm", []byte("no module"))
	testkit.Put(t, directory, "worse.wasm", []byte("no module"))
	log := &testkit.Log{}
	c := open(t, options{Directory: directory, Logger: log.Logger(slog.LevelInfo)})
	awaitTable(t, c, nil, []string{"mended.wasm", "removed.wasm", "worse.wasm"})

	testkit.Put(t, directory, "mended.wasm", version(t, "v0001", "", "mended"))
	testkit.Put(t, directory, "worse.wasm", []byte{})
	if err := os.Remove(filepath.Join(directory, "removed.wasm")); err != nil {
		t.Fatal(err)
	}
	awaitTable(t, c, []string{"/mended"}, []string{"worse.wasm"})
	log.WaitFor(t, "two ends", func(string) bool { return log.Count("level=INFO", "file no longer refused") >= 2 })
	closeNow(t, c)
	for file, want := range map[string]int{"mended.wasm": 1, "removed.wasm": 1, "worse.wasm": 0} {
		if n := log.Count("level=INFO", "file no longer refused", file); n != want {
			t.Errorf("%s: the log reports the end %d times, want %d: %s", file, n, want, log)
		}
	}
}
