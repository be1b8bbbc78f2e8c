//go:build unix

package command_test

import (
	"path/filepath"
	"strings"
	"testing"
	"unicode"

	"github.com/toolsrv/toolsrv/internal/testkit"
)

// TestNamesThatCommand has folders and files whose names contain control characters: none of these reaches the terminal, whichever command prints the
// names.
func TestNamesThatCommand(t *testing.T) {
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("runs commands one after another, so the race detector would only slow it down")
	}
	dir := filepath.Join(t.TempDir(), "a\x1b]0;title\x07b\u202ec")
	file := func(name string) string { return filepath.Join(dir, name) }
	name := "x\x1b[2Jy"
	testkit.Put(t, dir, "empty/read.me", "")
	m := string(release(t, "shop", "echo", "1"))
	for _, c := range []struct {
		args []string
		code int
		want string // in the output
	}{
		{[]string{"init", dir}, 0, `Made `},
		{[]string{"init", dir}, 1, `has a toolsrv.toml already`},
		{[]string{"init", file(name), "--lang", "go"}, 0, ` build '`},
		{[]string{"new", file("tool"), "--lang", "go"}, 0, `Made `},
		{[]string{"build", file("tools/greet.py")}, 0, `greet.wasm: python`},
		{[]string{"pack", testkit.Put(t, dir, name+"2.wasm", m)}, 0, `/shop/echo`},
		{[]string{"pack", file(name + "2.wasm"), "-o", file(name + "3.wasm"), "--manifest", testkit.Put(t, dir, "m.json", manifestOf("shop", "echo"))}, 0, `/shop/echo`},
		{[]string{"test", file(name + "3.wasm")}, 0, `has no examples`},
		{[]string{"check", file(name + "3.wasm")}, 0, `/shop/echo`},
		{[]string{"inspect", file(name + "3.wasm")}, 0, `/shop/echo`},
		{[]string{"check", "--config", testkit.Put(t, dir, name+".toml", "[tools]\ndirectory = \"empty\"\n[[grant]]\nmatch = \"no/tool\"\nkv = \"1MiB\"\n")}, 0, `matches no tool`},
	} {
		code, stdout, stderr := run(c.args...)
		said := stdout + stderr
		if code != c.code || !strings.Contains(said, c.want) || !strings.Contains(said, `\u001b`) && c.code == 0 {
			t.Errorf("%q: got %d, %q; want %d and %q", c.args, code, said, c.code, c.want)
		}
		if i := strings.IndexFunc(said, func(r rune) bool { return r != '\n' && !unicode.IsPrint(r) }); i >= 0 {
			t.Errorf("%q: the terminal gets %q", c.args, said[i:])
		}
	}
}
