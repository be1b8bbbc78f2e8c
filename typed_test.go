package toolsrv_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestTypedIsTheSDKs compares the package that the server and the Go SDK share with its original in the SDK.
func TestTypedIsTheSDKs(t *testing.T) {
	t.Parallel()
	read := func(dir string) map[string][]byte {
		files, err := filepath.Glob(filepath.Join(dir, "*"))
		if err != nil {
			t.Fatal(err)
		}
		texts := map[string][]byte{}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			if texts[filepath.Base(file)], err = os.ReadFile(file); err != nil {
				t.Fatal(err)
			}
		}
		return texts
	}
	original, copied := read("sdk/go/internal/typed"), read("internal/typed")
	if len(original) < 5 {
		t.Fatalf("sdk/go/internal/typed has %d files; has the package moved?", len(original))
	}
	const remedy = "change sdk/go/internal/typed, and run make typed"
	for name, text := range original {
		if !bytes.Equal(copied[name], text) {
			t.Errorf("internal/typed/%s differs from the SDK's: %s", name, remedy)
		}
		delete(copied, name)
	}
	for name := range copied {
		t.Errorf("internal/typed/%s is not one of the SDK's files: %s", name, remedy)
	}
}
