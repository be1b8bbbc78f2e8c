package core_test

import (
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/core"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/versions"
)

// TestRollbackStays has a rollback hold after a restart, and a file that is no longer what it was rolled back over served as it is.
func TestRollbackStays(t *testing.T) {
	t.Parallel()
	c, at := sources(t, "tools")
	c.State.Directory = filepath.Join(t.TempDir(), "state")
	old, next, last := guest(t, "shop", "old"), guest(t, "shop", "next"), guest(t, "shop", "last")
	path := testkit.Put(t, at[0], "a.wasm", old)
	running := func(do func(s *core.Service)) {
		t.Helper()
		s, err := core.Open(t.Context(), c, core.Options{})
		if err != nil {
			t.Fatal(err)
		}
		do(s)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
	f := versions.File{Source: at[0], Name: "a.wasm"}
	running(func(s *core.Service) {
		await(t, s, "/shop/old")
		for end := time.Now().Add(time.Minute); ; time.Sleep(time.Millisecond) {
			if s.Versions.Has(f, digestOf(old)) {
				break
			}
			if time.Now().After(end) {
				t.Fatal("the version is not kept")
			}
		}
	})
	testkit.Put(t, at[0], "a.wasm", next)
	running(func(s *core.Service) {
		await(t, s, "/shop/next")
		if err := s.Versions.Roll(t.Context(), versions.Rollback{File: f, Over: digestOf(next), Digest: digestOf(old)}); err != nil {
			t.Fatal(err)
		}
	})
	running(func(s *core.Service) { await(t, s, "/shop/old") })
	if err := os.Chtimes(path, time.Time{}, time.Now().Add(-time.Hour)); err != nil {
		t.Fatal(err)
	}
	running(func(s *core.Service) { await(t, s, "/shop/old") })
	testkit.Put(t, at[0], "a.wasm", last)
	running(func(s *core.Service) { await(t, s, "/shop/last") })
	testkit.Put(t, at[0], "a.wasm", next)
	running(func(s *core.Service) { await(t, s, "/shop/next") })
}

func digestOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// TestVersionsNowhere serves files as always where their versions can't be kept.
func TestVersionsNowhere(t *testing.T) {
	t.Parallel()
	c, at := sources(t, "tools")
	testkit.Put(t, at[0], "a.wasm", guest(t, "shop", "echo"))
	c.State.Directory, c.State.Implied = filepath.Join(testkit.Put(t, t.TempDir(), "file", ""), "below"), true
	s := open(t, c, core.Options{})
	await(t, s, "/shop/echo")
	if err := s.Catalog.WaitCompiled(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := call(t, s, "/shop/echo", `{"n":1}`); got != `{"n":1}` {
		t.Errorf("got %s", got)
	}
}
