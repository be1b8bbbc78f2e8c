package main_test

import (
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
)

// TestDirectory changes the tools directory of a running service.
func TestDirectory(t *testing.T) {
	t.Parallel()
	dir := site(t, "", map[string][]byte{
		"shop.wasm":   guest(t, "shop", "1.0.0", "echo"),
		"broken.wasm": []byte("not a module"),
	})
	s := start(t, dir)
	tools := filepath.Join(dir, "tools")
	lists := func(want ...string) func() bool {
		return func() bool { return slices.Equal(s.listed(), want) }
	}

	// A refused file does not keep other files from being served.
	s.waitLine("the refusal of broken.wasm", refusal("broken.wasm"))
	if got := s.listed(); !lists("/shop/echo 1.0.0")() {
		t.Fatalf("at the start /tools lists %q", got)
	}

	// New files: one renamed into place, and one written in place.
	put(t, filepath.Join(tools, "mail.wasm"), guest(t, "mail", "1.0.0", "echo"))
	if err := os.WriteFile(filepath.Join(tools, "fax.wasm"), guest(t, "fax", "1.0.0", "echo"), 0o600); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(tools, "new", "folder", "pager.wasm"), guest(t, "", "1.0.0", "echo"))
	s.eventually("dropped files are served",
		lists("/fax/echo 1.0.0", "/mail/echo 1.0.0", "/new/folder/echo 1.0.0", "/shop/echo 1.0.0"))
	for _, path := range []string{"/fax/echo", "/mail/echo", "/new/folder/echo"} {
		if a := s.post(path, order); a.status != http.StatusOK {
			t.Errorf("POST %s: %d %s", path, a.status, a.body)
		}
	}

	// The file is replaced: echo is now the second function of the module, which refuses calls.
	tag := s.get("/tools").header.Get("ETag")
	put(t, filepath.Join(tools, "shop.wasm"), guest(t, "shop", "2.0.0", "other", "echo"))
	s.eventually("the replaced file is served",
		lists("/fax/echo 1.0.0", "/mail/echo 1.0.0", "/new/folder/echo 1.0.0", "/shop/echo 2.0.0", "/shop/other 2.0.0"))
	if a := s.post("/shop/echo", order); a.status != http.StatusConflict {
		t.Errorf("POST to the replaced tool: %d %s, want 409", a.status, a.body)
	}
	if s.get("/tools").header.Get("ETag") == tag {
		t.Error("the ETag of /tools has not changed with the file")
	}

	// The file is replaced by a bad one: the previous version stays in service.
	put(t, filepath.Join(tools, "mail.wasm"), []byte("\x00asm but no more"))
	s.waitLine("the refusal of mail.wasm", refusal("mail.wasm"))
	if a := s.post("/mail/echo", order); a.status != http.StatusOK {
		t.Errorf("POST to the tool whose new file is bad: %d %s", a.status, a.body)
	}

	// A second tool with the same path: the first one stays in service.
	put(t, filepath.Join(tools, "thief.wasm"), guest(t, "fax", "6.6.6", "echo"))
	line := s.waitLine("the refusal of thief.wasm", refusal("thief.wasm"))
	if text := textOf(line); !strings.Contains(text, "fax.wasm") {
		t.Errorf("the refusal does not name the file that has the path: %s", text)
	}

	// Removed.
	if err := os.Remove(filepath.Join(tools, "shop.wasm")); err != nil {
		t.Fatal(err)
	}
	s.eventually("the removed file is not served",
		lists("/fax/echo 1.0.0", "/mail/echo 1.0.0", "/new/folder/echo 1.0.0"))
	if a := s.post("/shop/echo", order); a.status != http.StatusNotFound {
		t.Errorf("POST to the removed tool: %d %s, want 404", a.status, a.body)
	}

	// A bad file that is corrected.
	put(t, filepath.Join(tools, "broken.wasm"), guest(t, "mended", "1.0.0", "echo"))
	s.eventually("the corrected file is served",
		lists("/fax/echo 1.0.0", "/mail/echo 1.0.0", "/mended/echo 1.0.0", "/new/folder/echo 1.0.0"))
}

// refusal accepts a warning or an error that names a file.
func refusal(file string) func(line map[string]any) bool {
	return func(line map[string]any) bool {
		return (line["level"] == "WARN" || line["level"] == "ERROR") && strings.Contains(textOf(line), file)
	}
}

// textOf joins all strings of a log line.
func textOf(line map[string]any) string {
	var text strings.Builder
	for _, value := range line {
		if s, ok := value.(string); ok {
			text.WriteString(s + " ")
		}
	}
	return text.String()
}

// TestCheckAgrees compares the tools that the service serves with those that `toolsrv check` accepts: of two files with the same path, both accept
// the one that was served, also after a restart; neither accepts a file with too little memory.
func TestCheckAgrees(t *testing.T) {
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("starts processes one after another, so the race detector would only slow it down")
	}
	dir := site(t, "[[override]]\nmatch = \"tiny\"\nmemory = \"64KiB\"\n", map[string][]byte{
		"m.wasm":    guest(t, "shop", "1.0.0", "echo"),
		"tiny.wasm": guest(t, "tiny", "1.0.0", "echo"),
	})
	const refused = "needs 128 KiB of memory to start, but its limit is 64 KiB"
	agree := func(s *service) {
		t.Helper()
		s.waitLine("the refusal of first.wasm", refusal("first.wasm"))
		s.waitLine("the refusal of tiny.wasm", func(line map[string]any) bool { return strings.Contains(textOf(line), refused) })
		if got := s.listed(); !slices.Equal(got, []string{"/shop/echo 1.0.0"}) {
			t.Errorf("/tools lists %q", got)
		}
		out, err := command("check", "--config", filepath.Join(dir, "toolsrv.toml")).CombinedOutput()
		for _, want := range []string{"ok       " + filepath.Join(dir, "tools", "m.wasm"), "refused  " + filepath.Join(dir, "tools", "first.wasm") + ": path /shop/echo is taken", refused} {
			if err == nil || !strings.Contains(string(out), want) {
				t.Errorf("toolsrv check does not say %q (%v):\n%s", want, err, out)
			}
		}
	}
	s := start(t, dir)
	s.waitLog("ready")
	put(t, filepath.Join(dir, "tools", "first.wasm"), guest(t, "shop", "2.0.0", "echo"))
	agree(s)
	if err := s.cmd.Process.Kill(); err != nil { // a crash
		t.Fatal(err)
	}
	s.exitCode()
	s = start(t, dir)
	s.waitLog("ready")
	agree(s)
}
