package attest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/deploy/internal/attest"
	"github.com/toolsrv/toolsrv/deploy/internal/release"
)

// TestNothing: an empty release can't be attested, nor one without programs. TestRelease in cmd/dist checks a whole one.
func TestNothing(t *testing.T) {
	t.Parallel()
	r := &release.Release{Root: t.TempDir(), Out: t.TempDir()}
	if err := attest.Make(t.Context(), r); err == nil || !strings.Contains(err.Error(), "no file that could be attested") {
		t.Errorf("an empty release: got %v", err)
	}
	if err := os.WriteFile(filepath.Join(r.Out, "a"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := attest.Make(t.Context(), r); err == nil {
		t.Error("a release without programs is attested")
	}
	if left, err := os.ReadDir(r.Out); err != nil || len(left) != 1 {
		t.Errorf("it left %v (%v), want nothing besides the file that was there", left, err)
	}
}
