//go:build unix

package main_test

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestDirectoryBecomesPipe replaces the tools directory with a pipe for a moment: served tools stay, and files that are added afterwards are served.
func TestDirectoryBecomesPipe(t *testing.T) {
	t.Parallel()
	dir := site(t, "", map[string][]byte{"shop.wasm": guest(t, "shop", "1.0.0", "echo")})
	tools, aside := filepath.Join(dir, "tools"), filepath.Join(dir, "aside")
	s := start(t, dir)
	if err := os.Rename(tools, aside); err != nil {
		t.Fatal(err)
	}
	makePipe(t, tools)
	s.waitLine("the report that the directory can't be read", func(line map[string]any) bool {
		return line["level"] == "WARN" && strings.Contains(textOf(line), "not a directory")
	})
	if a := s.post("/shop/echo", order); a.status != http.StatusOK {
		t.Errorf("a tool that was served: %d, want 200", a.status)
	}
	if err := os.Remove(tools); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(aside, "more.wasm"), guest(t, "more", "1.0.0", "echo"))
	if err := os.Rename(aside, tools); err != nil {
		t.Fatal(err)
	}
	s.eventually("the new file is served", func() bool { return s.post("/more/echo", order).status == http.StatusOK })
	s.signal(syscall.SIGTERM)
	if got := s.exitCode(); got != 0 {
		t.Errorf("exit code %d, want 0", got)
	}
}

// TestReloadOfPipe lets a reload read tokens from a pipe into which nobody writes. The server says so, and later reloads work.
func TestReloadOfPipe(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("the reload waits for ten seconds: not with -short")
	}
	dir := site(t, "[auth]\ntokens_file = \"tokens\"\n", map[string][]byte{"shop.wasm": guest(t, "shop", "1.0.0", "echo")})
	tokens := filepath.Join(dir, "tokens")
	put(t, tokens, []byte(token+"\n"))
	s := start(t, dir)
	if err := os.Remove(tokens); err != nil {
		t.Fatal(err)
	}
	makePipe(t, tokens)
	s.signal(syscall.SIGHUP)
	s.waitLine("the report that the reload took too long", func(line map[string]any) bool {
		return line["level"] == "ERROR" && strings.Contains(textOf(line), "it took longer than")
	})
	if got := s.status(token); got != http.StatusOK {
		t.Errorf("the old token: %d, want 200", got)
	}
	if err := os.Remove(tokens); err != nil {
		t.Fatal(err)
	}
	put(t, tokens, []byte(token+"-2\n"))
	s.signal(syscall.SIGHUP)
	s.eventually("the new token is accepted", func() bool { return s.status(token+"-2") == http.StatusOK })
	s.signal(syscall.SIGTERM)
	if got := s.exitCode(); got != 0 {
		t.Errorf("exit code %d, want 0", got)
	}
}
