package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

// tagged matches the tag of a release.
var tagged = regexp.MustCompile(`^v((?:0|[1-9][0-9]*)\.(?:0|[1-9][0-9]*)\.(?:0|[1-9][0-9]*)(?:-[0-9A-Za-z.-]+)?)$`)

// versioned are the files with the version of the SDKs, which are released with toolsrv and have the same version.
var versioned = []struct{ file, pattern string }{
	{"internal/author/project/scaffold.go", `const SDKVersion = "([^"]+)"`},
	{"sdk/go/module.go", `const Version = "([^"]+)"`},
	{"sdk/js/package.json", `"version": "([^"]+)"`},
	{"sdk/python/pyproject.toml", `(?m)^version = "([^"]+)"`},
	{"sdk/rust/Cargo.toml", `(?m)^version = "([^"]+)"`},
	{"sdk/rust/toolsrv/Cargo.toml", `toolsrv-macros = \{ version = "=([^"]+)"`},
}

// release reports everything that is missing for a release of this tree. Without a tag, it uses the version in the first of the SDKs' files.
func (c *ci) release() error {
	root := c.tree.root
	var missing []string
	lack := func(err error) {
		if err != nil {
			missing = append(missing, "\n- "+err.Error())
		}
	}
	lack(committed(root))
	versions := make([]string, len(versioned))
	for i, v := range versioned {
		var err error
		versions[i], err = said(root, v.file, v.pattern)
		lack(err)
	}
	version, err := tagOf(root, versions[0])
	lack(err)
	if version == "" {
		version = versions[0]
	}
	for i, v := range versioned {
		if versions[i] != "" && versions[i] != version {
			lack(fmt.Errorf("%s says version %s: make it %s", v.file, versions[i], version))
		}
	}
	if version != "" {
		lack(changes(root, version))
	}
	date, err := c.passedLong()
	lack(err)
	if len(missing) > 0 {
		return fmt.Errorf("this tree can't be released:%s", strings.Join(missing, ""))
	}
	fmt.Fprintf(c.out, "%s can be released: make ci-long passed with this tree on %s\n", version, date)
	return nil
}

// passedLong returns when make ci-long passed with this tree.
func (c *ci) passedLong() (date string, err error) {
	digest, err := c.tree.digest(long)
	if err != nil {
		return "", err
	}
	passed, err := c.tree.passed()
	if err != nil {
		return "", err
	}
	if date := since(passed, long.name, digest); date != "" {
		return date, nil
	}
	at := slices.IndexFunc(passed, func(p pass) bool { return p.name == long.name })
	if at < 0 {
		return "", errors.New("make ci-long has never passed: run it, and commit " + passedFile)
	}
	return "", fmt.Errorf("make ci-long passed on %s with another tree than this: run it, and commit %s", passed[at].date, passedFile)
}

// ask returns the output of git in a checkout.
func ask(root string, arguments ...string) (string, error) {
	cmd := exec.Command("git", arguments...)
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s: %w", cmd, err)
	}
	return string(out), nil
}

// committed checks that the tree has no uncommitted changes, which Go would mention in a program.
func committed(root string) error {
	status, err := ask(root, "status", "--porcelain")
	if err == nil && status != "" {
		err = fmt.Errorf("%d files differ from the commit: commit or remove them", strings.Count(status, "\n"))
	}
	return err
}

// tagOf returns the version in the commit's tag. The SDK for Go, a module in a folder, needs a tag of its own.
func tagOf(root, proposed string) (string, error) {
	list, err := ask(root, "tag", "--points-at", "HEAD")
	if err != nil {
		return "", err
	}
	var versions []string
	tags := strings.Fields(list)
	for _, tag := range tags {
		if m := tagged.FindStringSubmatch(tag); m != nil {
			versions = append(versions, m[1])
		}
	}
	switch {
	case len(versions) == 0 && proposed == "":
		return "", errors.New("HEAD has no tag vX.Y.Z")
	case len(versions) == 0:
		return "", fmt.Errorf("HEAD has no tag vX.Y.Z: git tag v%s && git tag sdk/go/v%s", proposed, proposed)
	case len(versions) > 1:
		return "", fmt.Errorf("HEAD has the tags of several releases, %s: leave one", strings.Join(versions, " and "))
	case !slices.Contains(tags, "sdk/go/v"+versions[0]):
		return versions[0], fmt.Errorf("HEAD has no tag for the module of the SDK for Go: git tag sdk/go/v%s", versions[0])
	}
	return versions[0], nil
}

// said returns the version in a file.
func said(root, file, pattern string) (string, error) {
	text, err := os.ReadFile(filepath.Join(root, filepath.FromSlash(file)))
	if err != nil {
		return "", err
	}
	m := regexp.MustCompile(pattern).FindSubmatch(text)
	if m == nil {
		return "", fmt.Errorf("%s says no version: nothing matches %s", file, pattern)
	}
	return string(m[1]), nil
}

// changes checks that CHANGELOG.md has a section for a version, in the form of Keep a Changelog.
func changes(root, version string) error {
	const file = "CHANGELOG.md"
	text, err := os.ReadFile(filepath.Join(root, file))
	if err != nil {
		return err
	}
	sections := strings.Split("\n"+string(text), "\n## ")[1:]
	at := slices.IndexFunc(sections, func(s string) bool { return strings.HasPrefix(s, "["+version+"]") })
	if at < 0 {
		return fmt.Errorf("%s has no section ## [%s] - YYYY-MM-DD", file, version)
	}
	title, body, _ := strings.Cut(sections[at], "\n")
	date, ok := strings.CutPrefix(title, "["+version+"] - ")
	if _, err := time.Parse(time.DateOnly, date); !ok || err != nil {
		return fmt.Errorf("%s has the title %q: it needs a date, ## [%s] - YYYY-MM-DD", file, title, version)
	}
	kinds := []string{"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
	parts := strings.Split("\n"+body, "\n### ")
	if strings.TrimSpace(parts[0]) != "" || len(parts) == 1 {
		return fmt.Errorf("%s: the changes of %s need a title each kind, ### and one of %s", file, version, strings.Join(kinds, ", "))
	}
	for _, part := range parts[1:] {
		kind, list, _ := strings.Cut(part, "\n")
		if !slices.Contains(kinds, kind) {
			return fmt.Errorf("%s: %q in the section of %s is none of %s", file, kind, version, strings.Join(kinds, ", "))
		}
		if !strings.HasPrefix(strings.TrimSpace(list), "- ") {
			return fmt.Errorf("%s: there is no list below %s in the section of %s", file, kind, version)
		}
	}
	return nil
}
