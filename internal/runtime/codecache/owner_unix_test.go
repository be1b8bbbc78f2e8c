//go:build unix

package codecache_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/runtime/codecache"
)

// stranger is a user that is neither root nor the one that runs this test.
const stranger = 61234

// give changes a file's owner. Only root can do that; otherwise the test is skipped.
func give(t *testing.T, path string, uid int) {
	t.Helper()
	if err := os.Chown(path, uid, uid); err != nil {
		t.Skipf("SKIPPED, so the ownership of compiled code is not tested: %v", err)
	}
}

// TestPlanted lets another user own an entry. The entry is not used, and is replaced.
// Proves: Files of others are not trusted
func TestPlanted(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	c, key := open(t, dir, 0), codecache.KeyOf("x")
	put(t, c, key, []byte("code"))
	paths, _ := entries(t, dir)
	give(t, paths[0], stranger)
	if got, err := c.Get(key); got != nil || err == nil || !strings.Contains(err.Error(), "belongs to user 61234") || c.Has(key) {
		t.Errorf("got %q, %v, want no code, and an error that names the owner", got, err)
	}
	put(t, c, key, []byte("ours"))
	if got, err := c.Get(key); err != nil || len(got) != 1 || string(got[0]) != "ours" {
		t.Errorf("got %q, %v, want our own", got, err)
	}
	if err := os.Chmod(paths[0], 0o666); err != nil {
		t.Fatal(err)
	}
	if got, err := c.Get(key); got != nil || err == nil || c.Has(key) {
		t.Errorf("got %q, %v, want no code from a file that everybody can write", got, err)
	}
}

// TestOwners opens directories that others can change, and some that others have put in the place of ours.
// Proves: Files of others are not trusted
func TestOwners(t *testing.T) {
	t.Parallel()
	refused := func(t *testing.T, dir, want string) {
		t.Helper()
		if c, err := codecache.Open(dir, 0); err == nil {
			c.Close()
			t.Error("a directory that others can change is used")
		} else if !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	t.Run("writable by everybody", func(t *testing.T) {
		dir := t.TempDir()
		if err := os.Chmod(dir, 0o777); err != nil {
			t.Fatal(err)
		}
		refused(t, dir, "chmod o-w")
		refused(t, filepath.Join(dir, "inner"), "chmod o-w")
		if err := os.Chmod(dir, 0o777|os.ModeSticky); err != nil {
			t.Fatal(err)
		}
		open(t, filepath.Join(dir, "other"), 0)
	})
	t.Run("of another user", func(t *testing.T) {
		dir := filepath.Join(t.TempDir(), "cache")
		open(t, dir, 0)
		give(t, dir, stranger)
		refused(t, dir, "belongs to user 61234")
		refused(t, filepath.Join(dir, "inner"), "belongs to user 61234")
	})
	t.Run("of another user, after our own was removed", func(t *testing.T) {
		dir, key := filepath.Join(t.TempDir(), "cache"), codecache.KeyOf("x")
		c := open(t, dir, 0)
		put(t, c, key, []byte("code"))
		give(t, dir, stranger)
		if got, err := c.Get(key); got != nil || err == nil || !strings.Contains(err.Error(), "belongs to user 61234") {
			t.Errorf("got %q, %v, want no code, and an error that names the directory's owner", got, err)
		}
		give(t, dir, os.Getuid())
	})
	t.Run("scratch of another user", func(t *testing.T) {
		c := open(t, t.TempDir(), 0)
		scratch, err := c.Scratch()
		if err != nil {
			t.Fatal(err)
		}
		give(t, scratch, stranger)
		if _, err := c.Scratch(); err == nil || !strings.Contains(err.Error(), "belongs to user 61234") {
			t.Errorf("got %v, want an error that names the owner", err)
		}
	})
}
