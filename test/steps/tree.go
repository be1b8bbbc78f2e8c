package main

import (
	"crypto/sha256"
	"fmt"
	"hash"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// A tree is a checkout.
type tree struct {
	root     string
	files    []string                      // all files that git tracks or would add, except passedFile: sorted, relative to root, with slashes
	folders  map[string]bool               // folders with Go files
	modules  map[string]bool               // folders with a go.mod
	packages map[string]map[string]*source // the packages, by the folder of the module and the package's own folder
	sums     map[string]string             // the digests of files that have been read so far
}

func openTree(root string) (*tree, error) {
	root, err := filepath.Abs(root)
	if err != nil {
		return nil, err
	}
	list := exec.Command("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	list.Dir = root
	names, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("list the files of git: %w", err)
	}
	t := &tree{root: root, folders: map[string]bool{}, modules: map[string]bool{}, packages: map[string]map[string]*source{}, sums: map[string]string{}}
	for name := range strings.SplitSeq(strings.TrimRight(string(names), "\x00"), "\x00") {
		if _, err := os.Lstat(filepath.Join(root, name)); err == nil && name != passedFile { // git also lists deleted files
			t.files = append(t.files, name)
		}
	}
	slices.Sort(t.files)
	t.files = slices.Compact(t.files)
	for _, file := range t.files {
		if path.Ext(file) == ".go" {
			t.folders[path.Dir(file)] = true
		}
		if path.Base(file) == "go.mod" {
			t.modules[path.Dir(file)] = true
		}
	}
	return t, nil
}

// digest returns a digest of all that a step reads: its name and patterns, the recipes that it runs, and the files that the patterns match.
func (t *tree) digest(s step) (string, error) {
	h := sha256.New()
	fmt.Fprintf(h, "%q %q %q\n", s.name, s.reads, s.first)
	targets := slices.Clone(s.first)
	for _, word := range strings.Fields(s.name) {
		if !strings.Contains(word, "=") {
			targets = append(targets, word)
		}
	}
	var files []string
	for _, pattern := range s.reads {
		if target, ok := strings.CutPrefix(pattern, "make:"); ok {
			targets = append(targets, target)
			continue
		}
		matched, err := t.match(pattern)
		if err != nil {
			return "", fmt.Errorf("%s: %w", s.name, err)
		}
		files = append(files, matched...)
	}
	makefile, err := os.ReadFile(filepath.Join(t.root, "Makefile"))
	if err != nil {
		return "", err
	}
	fmt.Fprintf(h, "%q\n", recipes(string(makefile), targets))
	slices.Sort(files)
	for _, file := range slices.Compact(files) {
		if err := t.add(h, file); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:16]), nil
}

// add adds a file to a digest: its name, and its content or, for a link, its target.
func (t *tree) add(h hash.Hash, file string) error {
	if t.sums[file] == "" {
		name := filepath.Join(t.root, file)
		if to, err := os.Readlink(name); err == nil {
			t.sums[file] = "links to " + filepath.ToSlash(to)
		} else if content, err := os.ReadFile(name); err == nil {
			t.sums[file] = fmt.Sprintf("%x", sha256.Sum256(content))
		} else {
			return err
		}
	}
	fmt.Fprintf(h, "%q %q\n", file, t.sums[file])
	return nil
}

// match returns the files that a pattern matches, at least one. A pattern is the path of a file or a folder, whose
// parts may be patterns of path.Match. A folder stands for all files in it except pages, which need a pattern of their own; a dot stands for all
// files. After go: or code:, a pattern is the folder of a package, or folder/... for all packages below it: see [tree.read].
func (t *tree) match(pattern string) ([]string, error) {
	var matched []string
	var err error
	if folder, ok := strings.CutPrefix(pattern, "go:"); ok {
		matched, err = t.read(folder, true)
	} else if folder, ok := strings.CutPrefix(pattern, "code:"); ok {
		matched, err = t.read(folder, false)
	} else {
		matched, err = t.below(pattern)
	}
	if err == nil && len(matched) == 0 {
		err = fmt.Errorf("%s matches no file", pattern)
	}
	return matched, err
}

func (t *tree) below(pattern string) ([]string, error) {
	if pattern == "." {
		return t.files, nil
	}
	var matched []string
	parts, pages := strings.Split(pattern, "/"), isPage(pattern)
	for _, file := range t.files {
		if isPage(file) && !pages {
			continue
		}
		in, err := within(parts, strings.Split(file, "/"))
		if err != nil {
			return nil, err
		}
		if in {
			matched = append(matched, file)
		}
	}
	return matched, nil
}

func isPage(file string) bool { return path.Ext(file) == ".md" }

// within reports whether patterns match the first parts of a path.
func within(patterns, parts []string) (bool, error) {
	if len(parts) < len(patterns) {
		return false, nil
	}
	for i, pattern := range patterns {
		if ok, err := path.Match(pattern, parts[i]); err != nil || !ok {
			return false, err
		}
	}
	return true, nil
}
