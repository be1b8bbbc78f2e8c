package main

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// A step is a line of stepsFile, what make is given, with what it reads.
type step struct {
	name  string
	reads []string
	needs []string // programs, one of which it takes; none where it is empty
}

// A tree is a checkout.
type tree struct {
	root     string
	files    []string            // relative to root, with slashes, sorted: those that git knows or would take up, but passedFile
	packages map[string][]string // the files that a pattern of packages stands for
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
	t := &tree{root: root, packages: map[string][]string{}}
	for name := range strings.SplitSeq(strings.TrimRight(string(names), "\x00"), "\x00") {
		if _, err := os.Lstat(filepath.Join(root, name)); err == nil && name != passedFile { // git knows what is deleted, too
			t.files = append(t.files, name)
		}
	}
	slices.Sort(t.files)
	t.files = slices.Compact(t.files)
	return t, nil
}

// steps reads stepsFile: a step stands at the beginning of a line, and what it reads in the indented lines below it. Where it has an @, it stands
// for a step for each package with fuzz targets, whose folder is put for the @.
func (t *tree) steps() ([]step, error) {
	text, err := os.ReadFile(filepath.Join(t.root, stepsFile))
	if err != nil {
		return nil, err
	}
	var steps []step
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0 || strings.HasPrefix(words[0], "#"):
		case !strings.HasPrefix(line, "\t"):
			steps = append(steps, step{name: strings.Join(words, " ")})
		case len(steps) == 0:
			return nil, fmt.Errorf("%s: %q belongs to no step", stepsFile, strings.TrimSpace(line))
		default:
			last := &steps[len(steps)-1]
			for _, word := range words {
				if program, ok := strings.CutPrefix(word, "needs:"); ok {
					last.needs = append(last.needs, program)
				} else {
					last.reads = append(last.reads, word)
				}
			}
		}
	}
	var all []step
	for _, s := range steps {
		if len(s.reads) == 0 {
			return nil, fmt.Errorf("%s: %s reads nothing", stepsFile, s.name)
		}
		if !strings.Contains(s.name, "@") {
			all = append(all, s)
			continue
		}
		folders, err := t.fuzzed()
		if err != nil {
			return nil, err
		}
		for _, folder := range folders {
			one := step{name: strings.ReplaceAll(s.name, "@", folder), needs: s.needs}
			for _, read := range s.reads {
				one.reads = append(one.reads, strings.ReplaceAll(read, "@", folder))
			}
			all = append(all, one)
		}
	}
	return all, nil
}

// fuzzed returns the folders of packages with fuzz targets.
func (t *tree) fuzzed() ([]string, error) {
	var folders []string
	for _, file := range t.files {
		if !strings.HasSuffix(file, "_test.go") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(t.root, file))
		if err != nil {
			return nil, err
		}
		if bytes.Contains(text, []byte("\nfunc Fuzz")) {
			folders = append(folders, path.Dir(file))
		}
	}
	slices.Sort(folders)
	return slices.Compact(folders), nil
}

// digest returns a digest of all that a step reads: its name and patterns, the Makefile, and the files that the patterns match.
func (t *tree) digest(s step) (string, error) {
	files := []string{"Makefile"}
	for _, pattern := range s.reads {
		matched, err := t.match(pattern)
		if err != nil {
			return "", fmt.Errorf("%s: %w", s.name, err)
		}
		files = append(files, matched...)
	}
	slices.Sort(files)
	h := sha256.New()
	fmt.Fprintf(h, "%q %q\n", s.name, s.reads)
	for _, file := range slices.Compact(files) {
		if err := t.add(h, file); err != nil {
			return "", err
		}
	}
	return fmt.Sprintf("%x", h.Sum(nil)[:16]), nil
}

// add adds a file to a digest: its name, and what is in it, or where it leads if it is a link.
func (t *tree) add(h hash.Hash, file string) error {
	name := filepath.Join(t.root, file)
	if to, err := os.Readlink(name); err == nil {
		fmt.Fprintf(h, "%q links to %q\n", file, filepath.ToSlash(to))
		return nil
	}
	content, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	fmt.Fprintf(h, "%q %x\n", file, sha256.Sum256(content))
	return nil
}

// match returns the files that a pattern matches, of which there is at least one. A pattern is a path, whose parts may be patterns of
// path.Match, of a file or of a folder with all that is in it; or go: and the folder of a package, for the package with its tests and all of
// this tree that these import, and with /... all packages below the folder.
func (t *tree) match(pattern string) ([]string, error) {
	var matched []string
	folder, ok := strings.CutPrefix(pattern, "go:")
	if ok {
		var err error
		if matched, err = t.imported(folder); err != nil {
			return nil, err
		}
	} else {
		parts := strings.Split(pattern, "/")
		for _, file := range t.files {
			in, err := within(parts, strings.Split(file, "/"))
			if err != nil {
				return nil, err
			}
			if in {
				matched = append(matched, file)
			}
		}
	}
	if len(matched) == 0 {
		return nil, fmt.Errorf("%s matches no file", pattern)
	}
	return matched, nil
}

// within reports whether patterns match the first parts of a path. A dot is the root.
func within(patterns, parts []string) (bool, error) {
	if len(patterns) == 1 && patterns[0] == "." {
		return true, nil
	}
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

// imported returns the files of packages, of their tests, and of all that these import of the tree. Files in folders without Go, such as
// testdata, belong to the package above them; go.mod and go.sum to all packages below them.
func (t *tree) imported(folder string) ([]string, error) {
	if files, ok := t.packages[folder]; ok {
		return files, nil
	}
	dir, pattern := folder, "."
	if above, ok := strings.CutSuffix(folder, "/..."); ok {
		dir, pattern = above, "./..."
	}
	list := exec.Command("go", "list", "-deps", "-test", "-f", "{{.Dir}}", pattern)
	list.Dir = filepath.Join(t.root, dir)
	out, err := list.Output()
	if err != nil {
		var failed *exec.ExitError
		if errors.As(err, &failed) {
			err = errors.New(strings.TrimSpace(string(failed.Stderr)))
		}
		return nil, fmt.Errorf("list what %s imports: %w", folder, err)
	}
	read := map[string]bool{}
	for name := range strings.Lines(string(out)) {
		if inside, err := filepath.Rel(t.root, strings.TrimSpace(name)); err == nil && filepath.IsLocal(inside) {
			read[filepath.ToSlash(inside)] = true
		}
	}
	packages, modules := map[string]bool{}, map[string]bool{}
	for _, file := range t.files {
		if strings.HasSuffix(file, ".go") {
			packages[path.Dir(file)] = true
		}
		if path.Base(file) == "go.mod" {
			modules[path.Dir(file)] = true
		}
	}
	needed := map[string]bool{} // modules of the packages
	for name := range read {
		needed[above(modules, name)] = true
	}
	var files []string
	for _, file := range t.files {
		if read[above(packages, path.Dir(file))] || (path.Base(file) == "go.mod" || path.Base(file) == "go.sum") && needed[path.Dir(file)] {
			files = append(files, file)
		}
	}
	t.packages[folder] = files
	return files, nil
}

// above returns the first of the folders on the way up from one, or "".
func above(folders map[string]bool, from string) string {
	for ; ; from = path.Dir(from) {
		switch {
		case folders[from]:
			return from
		case from == ".":
			return ""
		}
	}
}
