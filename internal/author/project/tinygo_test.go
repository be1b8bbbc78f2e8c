package project_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/author/project"
	"github.com/toolsrv/toolsrv/internal/testkit"
)

// fakeTinyGo accepts any Go that does not match the variable FAKE_REFUSES. It prints its arguments, and lets Go build the file, with the flags that
// Go has as well. It keeps what it has built beside FAKE_BUILT, since the projects of a test differ only in the flags that it drops.
const fakeTinyGo = `if [ "$1" = info ]; then
	[ "${GOTOOLCHAIN#go1.25}" = "$GOTOOLCHAIN" ] && [ -n "$FAKE_REFUSES" ] || exit 0
	echo "$FAKE_REFUSES" >&2
	exit 1
fi
echo "flags: $*" >&2
echo "toolchain: $GOTOOLCHAIN" >&2
while [ $# -gt 0 ]; do
	case $1 in -o) out=$2; shift;; -buildmode=*) mode=$1;; esac
	shift
done
kept=$FAKE_BUILT$mode
[ -f "$kept" ] || GOTOOLCHAIN=local GOOS=wasip1 GOARCH=wasm go build $mode -o "$kept" . || exit
cp "$kept" "$out"
`

// tinygoProject makes a project for TinyGo, with this //toolsrv: line in place of the template's.
func tinygoProject(t *testing.T, line string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "work")
	if err := project.New(dir, project.Scaffold{Name: "greet", Language: project.TinyGo, SDK: sdks}); err != nil {
		t.Fatal(err)
	}
	main := filepath.Join(dir, "main.go")
	text, err := os.ReadFile(main)
	if err != nil {
		t.Fatal(err)
	}
	write(t, main, strings.Replace(string(text), "//toolsrv:tinygo", line, 1))
	return dir
}

// TestTinyGoFlags checks the arguments for TinyGo, even if no TinyGo is installed.
func TestTinyGoFlags(t *testing.T) {
	testkit.NeedBuild(t, "go")
	script(t, "tinygo", fakeTinyGo)
	t.Setenv("FAKE_BUILT", filepath.Join(t.TempDir(), "built"))
	const begin, stack = " -gc=leaking -no-debug -o FILE ", "-ldflags=-extldflags='-z stack-size=524288' "
	for _, c := range []struct {
		name, line string
		plain      bool
		want       string
	}{
		{"a tool", "//toolsrv:tinygo", false, "-target=wasip1" + begin + stack + "-opt=2 -scheduler=none -buildmode=c-shared ."},
		{"a tool without WASI", "//toolsrv:tinygo wasm-unknown", false, "-target=wasm-unknown" + begin + stack + "-opt=2 -scheduler=none -buildmode=c-shared ."},
		{"a larger stack", "//toolsrv:tinygo stack=1000001B", false, "-target=wasip1" + begin + "-ldflags=-extldflags='-z stack-size=1000016' -opt=2 -scheduler=none -buildmode=c-shared ."},
		{"a larger stack and a target", "//toolsrv:tinygo wasm-unknown stack=4MiB", false, "-target=wasm-unknown" + begin + "-ldflags=-extldflags='-z stack-size=4194304' -opt=2 -scheduler=none -buildmode=c-shared ."},
		{"a program", "//toolsrv:tinygo", true, "-target=wasip1" + begin + stack + "-opt=2 -scheduler=none ."},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := ""
			if c.plain {
				dir = folder(t, map[string]string{"go.mod": goMod, "main.go": c.line + "\n" + shoutGo, "tool.json": shoutManifest})
			} else {
				dir = tinygoProject(t, c.line)
			}
			module, said, err := compile(t, dir)
			if err != nil {
				t.Fatalf("%v\n%s", err, said)
			}
			got, _, _ := strings.Cut(said, "\n")
			words := strings.Fields(got)
			for i, word := range words {
				if i > 0 && words[i-1] == "-o" && filepath.IsAbs(word) {
					words[i] = "FILE"
				}
			}
			if want := "flags: build " + c.want; strings.Join(words, " ") != want {
				t.Errorf("got  %s\nwant %s", strings.Join(words, " "), want)
			}
			if tools := load(t, module); len(tools) != 1 {
				t.Errorf("got %d tools, want 1", len(tools))
			}
		})
	}
}

// TestTinyGoRefusesGo checks that TinyGo runs with a Go that it supports if it does not support the installed one.
func TestTinyGoRefusesGo(t *testing.T) {
	testkit.NeedBuild(t, "go")
	script(t, "tinygo", fakeTinyGo)
	t.Setenv("FAKE_BUILT", filepath.Join(t.TempDir(), "built"))
	fakeGo(t)
	const newer = "requires go version 1.19 through 1.25, got go1.26"
	for _, c := range []struct {
		name, refuses, setting string
		cached                 []string
		want, says             string // the toolchain of the build, and further output; or the error
	}{
		{"no Go", "", "auto", nil, "", ""},
		{"a newer one", newer, "auto", nil, "go1.25.14", "this TinyGo supports Go up to 1.25, but the installed Go is 1.26: building with GOTOOLCHAIN=go1.25.14"},
		{"a newer one, with some releases downloaded", newer, "auto", []string{"1.25.5", "1.25.11", "1.24.13"}, "go1.25.11", "GOTOOLCHAIN=go1.25.11"},
		{"no download allowed, nor needed", newer, "local", []string{"1.25.5"}, "go1.25.5", "GOTOOLCHAIN=go1.25.5"},
		{"no download allowed", newer, "local", []string{"1.24.5"}, "", "!this TinyGo supports Go up to 1.25, but the installed Go is 1.26: install Go 1.25 and put it first in PATH, or let go download it, which GOTOOLCHAIN=local forbids: GOTOOLCHAIN=go1.25.0 toolsrv build"},
		{"a newer Go than TinyGo's own", "cannot compile with Go toolchain version go1.26 (TinyGo was built using toolchain version go1.25.3)", "go1.26.1+auto", nil, "go1.25.14", "GOTOOLCHAIN=go1.25.14"},
		{"none available", strings.ReplaceAll(newer, "25", "21"), "auto", nil, "", "!this TinyGo supports Go up to 1.21, but the installed Go is 1.26: install Go 1.21 and put it first in PATH: no such version"},
		{"an older one", "requires go version 1.27 through 1.29, got go1.26", "auto", nil, "", ""}, // the build says it again
		{"another complaint", "no such target", "auto", nil, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			cache := t.TempDir()
			for _, version := range c.cached {
				if err := os.MkdirAll(filepath.Join(cache, "golang.org", "toolchain@v0.0.1-go"+version+".plan9-mips"), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			for name, value := range map[string]string{"FAKE_REFUSES": c.refuses, "FAKE_SETTING": c.setting, "FAKE_CACHE": cache, "GOTOOLCHAIN": ""} {
				t.Setenv(name, value)
			}
			_, said, err := compile(t, tinygoProject(t, "//toolsrv:tinygo"))
			if want, fails := strings.CutPrefix(c.says, "!"); fails {
				if err == nil || err.Error() != want {
					t.Errorf("got  %v\nwant %s", err, want)
				}
				return
			}
			if err != nil {
				t.Fatalf("%v\n%s", err, said)
			}
			if !strings.Contains(said, "toolchain: "+c.want+"\n") || !strings.Contains(said, c.says) {
				t.Errorf("got %s\nwant the toolchain %q, and said %q", said, c.want, c.says)
			}
		})
	}
}

// fakeGo makes go report an environment and releases that the test chooses. Otherwise it runs the real go.
func fakeGo(t *testing.T) {
	t.Helper()
	real, err := exec.LookPath("go")
	if err != nil {
		t.Fatal(err)
	}
	script(t, "go", `case "$*" in
"env GOTOOLCHAIN GOMODCACHE GOHOSTOS GOHOSTARCH") echo "$FAKE_SETTING"; echo "$FAKE_CACHE"; echo plan9; echo mips;;
"-C "*" list -m -f {{.Version}} go@1.25") echo 1.25.14;;
"-C "*" list -m -f {{.Version}} go@"*) echo "no such version" >&2; exit 1;;
*) exec '`+real+`' "$@";;
esac
`)
}
