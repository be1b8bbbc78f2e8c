package lockfile_test

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/lockfile"
	"github.com/toolsrv/toolsrv/internal/testkit"
)

func TestLock(t *testing.T) {
	t.Parallel()
	digest := "sha256:" + strings.Repeat("0a", 32)
	path := lockfile.Path(filepath.Join(t.TempDir(), "toolsrv.toml"))
	if filepath.Base(path) != "toolsrv.lock" {
		t.Errorf("got %s", path)
	}
	if l, err := lockfile.Read(path); l != nil || err != nil {
		t.Errorf("without a file: got %v, %v", l, err)
	}
	want := lockfile.Lock{{"a.example/x", "1", digest}, {"b.example/x", "~1.2", digest}}
	if err := lockfile.Write(path, lockfile.Lock{want[1], want[0]}); err != nil {
		t.Fatal(err)
	}
	got, err := lockfile.Read(path)
	if err != nil || !slices.Equal(got, want) || got.Digest("b.example/x", "~1.2") != digest || got.Digest("b.example/x", "1") != "" {
		t.Errorf("got %v, %v", got, err)
	}
	for range 2 {
		if err := lockfile.Write(path, nil); err != nil {
			t.Error(err)
		}
	}
	for text, want := range map[string]string{
		"":                              "is damaged: remove it",
		"{":                             "is damaged",
		"[]":                            "is damaged",
		`{"version":1,"sources":[]} {}`: "is damaged",
		`{"version":1,"other":[]}`:      "is damaged",
		`{"version":2}`:                 "has version 2, and this toolsrv reads version 1: update toolsrv, or remove the file",
		`{}`:                            "has no version, so toolsrv lock did not write it: remove it",
		`{"version":1,"sources":[{"oci":"a.example/x","tag":"1","digest":"sha256:00"}]}`: "sources[0].digest: ",
		strings.Repeat(" ", 64<<20): "read the lock file: ",
	} {
		if _, err := lockfile.Read(testkit.Put(t, t.TempDir(), "toolsrv.lock", text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.50q: got %v, want %s", text, err, want)
		}
	}
}
