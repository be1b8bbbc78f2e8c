package registry_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/catalog/registry"
)

// TestScratch makes scratch folders in a cache, and without one.
func TestScratch(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "cache")
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, inCache := range map[string]bool{folder: true, file: false, "": false} {
		scratch, err := registry.OpenCache(name, 0).Scratch()
		if err != nil {
			t.Fatal(err)
		}
		if all, err := os.ReadDir(scratch); len(all) > 0 || err != nil || strings.HasPrefix(scratch, folder) != inCache {
			t.Errorf("%q: got %s with %v, %v", name, scratch, all, err)
		}
		if err := os.RemoveAll(scratch); err != nil {
			t.Error(err)
		}
	}
}
