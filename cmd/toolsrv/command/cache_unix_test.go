//go:build unix

package command_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/ownership"
)

func TestCache(t *testing.T) {
	t.Parallel()
	volume := t.TempDir()
	if err := os.Chmod(volume, 0o777|os.ModeSetgid); err != nil { //nolint:gosec // as Kubernetes makes it
		t.Fatal(err)
	}
	dir := filepath.Join(volume, "toolsrv")
	for range 2 { // a restarted container finds the earlier folder
		if code, _, stderr := run("cache", dir); code != 0 {
			t.Fatalf("exit code %d: %s", code, stderr)
		}
	}
	info, err := os.Stat(dir)
	if err != nil || info.Mode() != os.ModeDir|0o700 {
		t.Errorf("got the mode %v (%v), want one for the owner alone", info.Mode(), err)
	}
	// The server sees only this folder, as the root of a mount, and checks that only its owner can change it.
	if err := ownership.CheckFile(dir, info); err != nil {
		t.Error(err)
	}
}

func TestCacheRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	open, file, link := filepath.Join(dir, "open"), filepath.Join(dir, "file"), filepath.Join(dir, "link")
	for _, err := range []error{os.Mkdir(open, 0o700), os.Chmod(open, 0o777), os.WriteFile(file, nil, 0o600), os.Symlink(dir, link)} { //nolint:gosec // it is refused
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct {
		args []string
		code int
		want string
	}{
		"no folder":           {nil, 2, "DIR is missing: name a folder"},
		"an empty name":       {[]string{""}, 2, "DIR is empty"},
		"others can write":    {[]string{open}, 1, "can be changed by every user"},
		"a file":              {[]string{file}, 1, "is not a folder"},
		"a link":              {[]string{link}, 1, "is not a folder"},
		"a volume is missing": {[]string{filepath.Join(dir, "missing", "toolsrv")}, 1, "no such file"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, _, stderr := run(append([]string{"cache"}, c.args...)...)
			if code != c.code || !strings.Contains(stderr, c.want) {
				t.Errorf("exit code %d, %q; want %d, and %q in it", code, stderr, c.code, c.want)
			}
		})
	}
}
