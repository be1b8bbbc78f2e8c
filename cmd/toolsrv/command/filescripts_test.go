package command_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/enginetest"
)

// servesScripts makes a managed server accept files and serve scripts.
const servesScripts = "upload = true\n[[source]]\ndirectory = \"tools\"\nscripts = true\n"

// scriptOf returns a script of the tool /sums/add, in some version.
func scriptOf(version string) string {
	return strings.Replace(addTypeScript, `"1.2.3"`, `"`+version+`"`, 1)
}

// TestPutScript puts a script, new versions of it and broken ones, rolls it back, removes it and brings it back, over the socket and over HTTP.
func TestPutScript(t *testing.T) {
	t.Parallel()
	if testkit.Race(t) {
		t.Skip("runs commands one after another, so the race detector would only slow it down")
	}
	enginetest.Need(t, "javascript")
	m := manage(t, servesScripts)
	dir := t.TempDir()
	made := 0
	put := func(content, name string) []string {
		made++
		return []string{"put", testkit.Put(t, dir, fmt.Sprintf("script%d.ts", made), content), name}
	}
	lying := filepath.Join(m.tools(), "sums", "add.ts")
	broken := scriptOf("9") + "\nexport const = 1;"
	for way, flags := range map[string][]string{"over the socket": {"--config", m.config}, "over HTTP": {"--server", m.url}} {
		for _, step := range []struct {
			args    []string
			code    int
			says    string
			version string // the script that is served then
		}{
			{append(put(scriptOf("1"), "sums/add.ts"), "--if-match", "none"), 0, "/sums/add", "1"},
			{put(scriptOf("1"), "sums/add.ts"), 0, "Nothing to change", "1"},
			{append(put(scriptOf("2"), "sums/add.ts"), "--if-match", "none"), 23, "was expected", "1"},
			{put("// another text\n"+scriptOf("1"), "sums/add.ts"), 0, "/sums/add", "1"},
			{put(scriptOf("2"), "sums/add.ts"), 0, "/sums/add", "2"},
			{put(broken, "sums/add.ts"), 3, "would be refused: add.ts:", "2"},
			{[]string{"history", "sums/add"}, 0, "add.ts", "2"},
			{[]string{"rollback", "sums/add", "--reason", "it is wrong"}, 0, "/sums/add", "1"},
			{[]string{"history", "sums/add.ts"}, 0, ": it is wrong", "1"},
			{put(scriptOf("3"), "sums/add.ts"), 0, "/sums/add", "3"},
			{[]string{"rollback", "sums/add"}, 0, "/sums/add", "1"}, // not version 2, since that was itself rolled back
			{[]string{"remove", "sums/add.ts"}, 0, "/sums/add", ""},
			{[]string{"history", "sums/add.ts"}, 0, "removed by ", ""},
			{[]string{"rollback", "sums/add.ts", "--if-match", strings.Repeat("0", 64)}, 23, "was expected", ""},
			{[]string{"rollback", "sums/add.ts"}, 0, "/sums/add", "1"}, // the version that was served
			{[]string{"history", "sums/add"}, 0, "served", "1"},
			{[]string{"remove", "sums/add.ts"}, 0, "/sums/add", ""},
		} {
			if step.args[0] == "rollback" { // a rollback, which uses the stored versions
				if v := m.versionOf(t, "/sums/add"); v == "2" {
					m.keeps(t, "sums/add", 3)
				}
			}
			if step.args[0] == "put" && step.version == "2" && step.code == 0 {
				m.keeps(t, "sums/add", 2)
			}
			code, stdout, stderr := run(append(step.args, flags...)...)
			if code != step.code || !strings.Contains(stdout+stderr, step.says) {
				t.Errorf("%s: %q: got %d, %s%s; want %d, %q", way, step.args, code, stdout, stderr, step.code, step.says)
			}
			if got := m.versionOf(t, "/sums/add"); got != step.version { // with the answer
				t.Errorf("%s: %q: the server has %q, want %q", way, step.args, got, step.version)
			}
		}
		if _, err := os.Stat(lying); err == nil {
			t.Error("the file is still there")
		}
		// As many versions of a script are kept as of a module. One that was edited by hand is a version, too, but not if it is broken.
		for _, version := range []string{"4", "5", "6", "7", "8", "9"} {
			m.must(t, put(scriptOf(version), "sums/add.ts")...)
		}
		eventually(t, "the last version is kept", func() bool { return m.keeps(t, "sums/add", 1).Versions[0].Served })
		if v := m.keeps(t, "sums/add", 5); len(v.Versions) != 5 {
			t.Errorf("%d versions are kept", len(v.Versions))
		}
		testkit.Put(t, m.tools(), "sums/add.ts", broken)
		eventually(t, "the script is refused", func() bool { return strings.Contains(m.must(t, "status"), "add.ts") })
		if got := m.versionOf(t, "/sums/add"); got != "9" {
			t.Errorf("%q is served in place of a broken script", got)
		}
		m.must(t, "rollback", "sums/add")
		if shown := m.must(t, "status"); strings.Contains(shown, "add.ts") || m.versionOf(t, "/sums/add") != "9" {
			t.Errorf("the script is still refused:\n%s", shown)
		}
		m.must(t, "remove", "sums/add.ts")
		if err := os.RemoveAll(filepath.Join(m.tools(), "sums")); err != nil {
			t.Fatal(err)
		}
	}
}

// TestPutScriptRefuses checks that a refused script changes nothing.
func TestPutScriptRefuses(t *testing.T) {
	t.Parallel()
	enginetest.Need(t, "javascript")
	m := manage(t, servesScripts)
	dir := t.TempDir()
	good := testkit.Put(t, dir, "good.ts", scriptOf("1"))
	shop := testkit.Put(t, dir, "shop.ts", strings.NewReplacer(`"sums"`, `"shop"`, "const add", "const echo").Replace(addTypeScript))
	python := testkit.Put(t, dir, "broken.py", "from toolsrv import\n")
	outside := testkit.Put(t, dir, "outside.ts", `import "../../outside.ts";`)
	large := testkit.Put(t, dir, "large.ts", "")
	if err := os.Truncate(large, 33<<20); err != nil {
		t.Fatal(err)
	}
	testkit.Put(t, m.tools(), "package/__init__.py", "")
	if err := os.Symlink(good, filepath.Join(m.tools(), "link.ts")); err != nil {
		t.Fatal(err)
	}
	count := func() (n int) {
		err := filepath.WalkDir(m.tools(), func(string, os.DirEntry, error) error { n++; return nil })
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	before := count()
	for name, c := range map[string]struct {
		file, name string
		code       int
		want       string
	}{
		"another's tool":                {shop, "sums/echo.ts", 3, "/shop/echo is taken"},
		"not a script":                  {good, "sums/add.txt", 3, "must end in .wasm or like a script"},
		"a module with a script's name": {m.tools() + "/shop.wasm", "new/shop.ts", 3, "would be refused"},
		"a script with a module's name": {good, "add.wasm", 3, "would be refused"},
		"outside":                       {good, "../add.ts", 3, "can't be the name"},
		"far outside":                   {good, "a/../../add.ts", 3, "can't be the name"},
		"absolute":                      {good, filepath.Join(dir, "new.ts"), 3, "can't be the name"},
		"hidden":                        {good, ".add.ts", 3, "can't be the name"},
		"a part":                        {good, "_add.ts", 3, "parts of others, or tests"},
		"below a part":                  {good, "_parts/add.ts", 3, "parts of others, or tests"},
		"a test":                        {good, "add.test.ts", 3, "parts of others, or tests"},
		"in a package":                  {good, "package/add.py", 3, "a folder with __init__.py"},
		"a link":                        {good, "link.ts", 3, "is a symbolic link"},
		"below a link":                  {good, "link.ts/add.ts", 3, "is a symbolic link"},
		"33 MiB":                        {large, "large.ts", 3, "large.ts has 33 MiB; a script may have 16 MiB"},
		"imports of outside":            {outside, "outside.ts", 3, "leads out of the tools directory"},
		"no tool in it":                 {testkit.Put(t, dir, "empty.ts", ""), "empty.ts", 3, "would be refused"},
		"a mistake in Python":           {python, "broken.py", 3, "would be refused"},
		"a folder":                      {dir, "folder.ts", 1, "make one file of a folder with toolsrv build"},
		"a module's case":               {good, "LINK.ts", 3, "upper and lower case"},
	} {
		if testkit.Race(t) && strings.HasSuffix(c.name, ".py") {
			continue // compiling CPython takes minutes
		}
		code, stdout, stderr := run("put", c.file, c.name, "--config", m.config)
		if code != c.code || !strings.Contains(stderr, c.want) || stdout != "" {
			t.Errorf("%s: got %d, %q %q; want %d, %q", name, code, stdout, stderr, c.code, c.want)
		}
	}
	if after := count(); after != before {
		t.Errorf("there are %d files and folders, want %d", after, before)
	}
	if code, _, stderr := run("remove", "link.ts", "--config", m.config); code != 3 || !strings.Contains(stderr, "is a symbolic link") {
		t.Errorf("remove a link: got %d, %s", code, stderr)
	}
}
