package core_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/config"
	"github.com/toolsrv/toolsrv/internal/core"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/enginetest"
	"github.com/toolsrv/toolsrv/internal/versions"
)

// TestRollbackStays: a rollback outlasts a restart. It ends if the file changes: then the file is served as it is.
func TestRollbackStays(t *testing.T) {
	t.Parallel()
	for name, tool := range map[string]func(name string) []byte{
		"a.wasm": func(name string) []byte { return guest(t, "shop", name) },
		"a.ts": func(name string) []byte {
			return fmt.Appendf(nil, `import { module, tool } from "toolsrv"; import "./_part.ts"; module({ namespace: "shop" }); export const %s = tool({ description: "Is there.", parameters: { type: "object" }, run: () => 1 });`, name)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if name == "a.ts" {
				enginetest.Need(t, "javascript")
			}
			c, at := sources(t, "shop")
			c.Sources[0].Scripts = true
			c.State.Directory = filepath.Join(t.TempDir(), "state")
			rollbackStays(t, c, at[0], name, tool)
		})
	}
}

// rollbackStays is TestRollbackStays for a file with a given name. tool makes a version of the file with a given tool.
func rollbackStays(t *testing.T, c *config.Config, dir, name string, tool func(name string) []byte) {
	old, next, last := tool("old"), tool("next"), tool("last")
	testkit.Put(t, dir, "_part.ts", "export const x = 1;")
	path := testkit.Put(t, dir, name, old)
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
	f := versions.File{Source: dir, Name: name}
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
	testkit.Put(t, dir, name, next)
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
	testkit.Put(t, dir, "_part.ts", "export const x = 2;") // an import of a script may change
	running(func(s *core.Service) { await(t, s, "/shop/old") })
	testkit.Put(t, dir, name, last)
	running(func(s *core.Service) { await(t, s, "/shop/last") })
	testkit.Put(t, dir, name, next)
	running(func(s *core.Service) { await(t, s, "/shop/next") })
}

func digestOf(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// TestVersionsNowhere serves files as usual if their versions can't be kept.
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
