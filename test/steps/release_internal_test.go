package main

import (
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
)

// releasable are the files of a repository that 1.2.0 can be released from.
var releasable = map[string]string{
	"Makefile":      "",
	".ci/steps.txt": "one\n\ta\n",
	"a":             "",
	"CHANGELOG.md":  "# Changelog\n\n## [Unreleased]\n\n## [1.2.0] - 2026-11-26\n\n### Added\n\n- Something.\n\n### Fixed\n\n- This.\n- That.\n\n## [1.1.0] - 2026-01-01\n\n- Older.\n",

	"internal/author/project/scaffold.go": "package project\n\nconst SDKVersion = \"1.2.0\"\n",
	"sdk/go/module.go":                    "package toolsrv\n\nconst Version = \"1.2.0\"\n",
	"sdk/js/package.json":                 "{\n  \"version\": \"1.2.0\",\n  \"devDependencies\": {\"x\": \"1.0.0\"}\n}\n",
	"sdk/python/pyproject.toml":           "[project]\nversion = \"1.2.0\"\n",
	"sdk/rust/Cargo.toml":                 "[workspace.package]\nversion = \"1.2.0\"\nrust-version = \"1.85\"\n",
	"sdk/rust/toolsrv/Cargo.toml":         "[dependencies]\ntoolsrv-macros = { version = \"=1.2.0\", path = \"../toolsrv-macros\" }\n",
}

// TestRelease removes one requirement after another from a repository that can be released, and then all of them.
func TestRelease(t *testing.T) {
	t.Parallel()
	both := []string{"v1.2.0", "sdk/go/v1.2.0"}
	for _, c := range []struct {
		name    string
		changed map[string]string
		tags    []string
		after   func(t *testing.T, root string) // once make ci-long has passed
		want    []string                        // parts of the message, each on a line of its own; if there are none, the tree can be released
	}{
		{name: "nothing is missing", tags: both},
		{name: "other tags beside", tags: append([]string{"v1", "nightly", "v1.2.0.1", "v01.2.0"}, both...)},
		{name: "a version before the release", tags: []string{"v1.3.0-rc.1", "sdk/go/v1.3.0-rc.1"}, want: []string{
			"scaffold.go says version 1.2.0: make it 1.3.0-rc.1", "module.go", "package.json", "pyproject.toml", "rust/Cargo.toml", "rust/toolsrv/Cargo.toml", "no section ## [1.3.0-rc.1]",
		}},
		{name: "no tag", want: []string{"HEAD has no tag vX.Y.Z: git tag v1.2.0 && git tag sdk/go/v1.2.0"}},
		{name: "a tag of another commit", tags: both, after: func(t *testing.T, root string) {
			git(t, root, "commit", "--quiet", "--allow-empty", "--message", "later")
		}, want: []string{"HEAD has no tag vX.Y.Z"}},
		{name: "no tag for the SDK", tags: both[:1], want: []string{"no tag for the module of the SDK for Go"}},
		{name: "two releases", tags: append([]string{"v1.2.1"}, both...), want: []string{"several releases, 1.2.0 and 1.2.1"}},
		{name: "an SDK with an older version", tags: both, changed: map[string]string{"sdk/js/package.json": `{"version": "1.1.0"}`}, want: []string{"sdk/js/package.json says version 1.1.0: make it 1.2.0"}},
		{name: "an SDK without a version", tags: both, changed: map[string]string{"sdk/go/module.go": "package toolsrv\n"}, want: []string{"sdk/go/module.go says no version"}},
		{name: "no version anywhere", changed: map[string]string{"internal/author/project/scaffold.go": ""}, want: []string{
			"scaffold.go says no version", "HEAD has no tag vX.Y.Z", "module.go says version 1.2.0", "package.json", "pyproject.toml", "rust/Cargo.toml", "toolsrv/Cargo.toml",
		}},
		{name: "no section", tags: both, changed: map[string]string{"CHANGELOG.md": "# Changelog\n\n## Unreleased\n\n- Something.\n"}, want: []string{"CHANGELOG.md has no section ## [1.2.0] - YYYY-MM-DD"}},
		{name: "no date", tags: both, changed: map[string]string{"CHANGELOG.md": "## [1.2.0]\n\n### Added\n\n- Something.\n"}, want: []string{"needs a date"}},
		{name: "a date that does not exist", tags: both, changed: map[string]string{"CHANGELOG.md": "## [1.2.0] - 2026-02-30\n\n### Added\n\n- Something.\n"}, want: []string{"needs a date"}},
		{name: "changes of no kind", tags: both, changed: map[string]string{"CHANGELOG.md": "## [1.2.0] - 2026-02-03\n\n- Something.\n\n### Added\n\n- More.\n"}, want: []string{"need a title each kind"}},
		{name: "an empty section", tags: both, changed: map[string]string{"CHANGELOG.md": "## [1.2.0] - 2026-02-03\n\n## [1.1.0] - 2026-01-01\n\n### Added\n\n- More.\n"}, want: []string{"need a title each kind"}},
		{name: "changes of an unknown kind", tags: both, changed: map[string]string{"CHANGELOG.md": "## [1.2.0] - 2026-02-03\n\n### New\n\n- Something.\n"}, want: []string{`"New" in the section of 1.2.0`}},
		{name: "a kind without changes", tags: both, changed: map[string]string{"CHANGELOG.md": "## [1.2.0] - 2026-02-03\n\n### Added\n\n### Fixed\n\n- This.\n"}, want: []string{"no list below Added"}},
		{name: "a file that is not in git", tags: both, after: func(t *testing.T, root string) { testkit.Put(t, root, "new", "") },
			want: []string{"1 files differ from the commit", "make ci-long passed on 2026-01-02 with another tree"}},
		{name: "make ci-long never passed", tags: both, after: func(t *testing.T, root string) {
			if err := os.Remove(filepath.Join(root, passedFile)); err != nil {
				t.Fatal(err)
			}
			git(t, root, "commit", "--quiet", "--amend", "--all", "--no-edit")
			git(t, root, "tag", "--force", "v1.2.0")
			git(t, root, "tag", "--force", "sdk/go/v1.2.0")
		}, want: []string{"make ci-long has never passed"}},
		{name: "everything", changed: map[string]string{"CHANGELOG.md": "", "sdk/rust/Cargo.toml": "[workspace.package]\nversion = \"0.1.0\"\n"},
			after: func(t *testing.T, root string) { testkit.Put(t, root, "a", "changed") },
			want:  []string{"1 files differ from the commit", "HEAD has no tag", "sdk/rust/Cargo.toml says version 0.1.0", "CHANGELOG.md has no section", "with another tree"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			files := maps.Clone(releasable)
			maps.Copy(files, c.changed)
			r, _, out := checkout(t, files, well)
			root := r.tree.root
			digest, err := r.tree.digest(long)
			if err != nil {
				t.Fatal(err)
			}
			if err := r.rememberLong(digest); err != nil {
				t.Fatal(err)
			}
			git(t, root, "add", "--all")
			git(t, root, "commit", "--quiet", "--message", "release")
			for _, tag := range c.tags {
				git(t, root, "tag", tag)
			}
			if c.after != nil {
				c.after(t, root)
			}
			reopen(t, r, root)
			err = r.release()
			if len(c.want) == 0 {
				if err != nil || !strings.Contains(out.String(), "can be released: make ci-long passed with this tree on 2026-01-02") {
					t.Errorf("got %v, %s", err, out)
				}
				return
			}
			if err == nil {
				t.Fatalf("the tree can be released: %s", out)
			}
			lines := strings.Split(err.Error(), "\n- ")[1:]
			for i, want := range c.want {
				if i >= len(lines) || !strings.Contains(lines[i], want) {
					t.Errorf("line %d of\n%v\ndoes not have %q", i+1, err, want)
				}
			}
			if len(lines) > len(c.want) {
				t.Errorf("the message has more than %q: %v", c.want, err)
			}
		})
	}
}

// TestRememberLong checks that a tree that has changed during make ci-long has not passed.
func TestRememberLong(t *testing.T) {
	t.Parallel()
	c, _, _ := checkout(t, releasable, well)
	digest, err := c.tree.digest(long)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.rememberLong(digest); err != nil {
		t.Fatal(err)
	}
	if err := c.run(false); err != nil { // the line stays
		t.Fatal(err)
	}
	reopen(t, c, c.tree.root)
	if date, err := c.passedLong(); err != nil || date != "2026-01-02" {
		t.Errorf("got %q, %v", date, err)
	}
	testkit.Put(t, c.tree.root, "new", "")
	reopen(t, c, c.tree.root)
	if err := c.rememberLong(digest); err == nil {
		t.Error("a tree that has changed since it began is remembered")
	}
}

func git(t *testing.T, root string, arguments ...string) {
	t.Helper()
	cmd := exec.Command("git", append([]string{"-c", "user.name=Test", "-c", "user.email=test@example.com", "-c", "commit.gpgsign=false", "-c", "tag.gpgsign=false"}, arguments...)...)
	cmd.Dir = root
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: %s", cmd, err, out)
	}
}
