package main

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A step is the arguments of make for one step of CI, with what the step reads.
type step struct {
	name  string // the arguments, such as "bench PACKAGES=wasmtools/auth"
	reads []string
	first []string // targets that are made before it
	needs []string // the step needs one of these programs; empty if it needs no program
	waits bool     // the step waits more than it computes, so it runs in parallel with any other
	fills bool     // the step keeps the machine busy: only steps that wait run in parallel with it

	// Steps of a group differ only in a folder, and make gets the folders of all due steps at once. "" if the step is in no group.
	group, folder string
}

// A template describes a step for each of several packages.
type template struct {
	step
	in  []string // the folders of Go modules
	has *regexp.Regexp
}

// one and several are placeholders for the folder of a package in a template's name. With one, make runs once for each package; with several, once
// for all.
const (
	one     = "@"
	several = "@..."
)

// of returns the step for the package in a folder.
func (t *template) of(folder string) step {
	s := step{needs: t.needs, first: t.first, waits: t.waits, fills: t.fills, folder: folder}
	if strings.Contains(t.name, several) {
		s.group = t.name
	}
	s.name = strings.Replace(strings.Replace(t.name, several, one, 1), one, folder, 1)
	for _, read := range t.reads {
		s.reads = append(s.reads, strings.ReplaceAll(read, one, folder))
	}
	return s
}

// folder returns the package for which a template has a step of that name.
func (t *template) folder(name string) (folder string, ok bool) {
	before, after, _ := strings.Cut(strings.Replace(t.name, several, one, 1), one)
	if folder, ok = strings.CutPrefix(name, before); ok {
		folder, ok = strings.CutSuffix(folder, after)
	}
	return folder, ok
}

// steps reads stepsFile. If a template also makes a step of the same name, both count together.
func (t *tree) steps() ([]step, error) {
	text, err := os.ReadFile(filepath.Join(t.root, stepsFile))
	if err != nil {
		return nil, err
	}
	written, err := parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", stepsFile, err)
	}
	var all []step
	var templates []template
	for _, w := range written {
		if !strings.Contains(w.name, one) {
			all = add(all, templates, w.step)
			continue
		}
		templates = append(templates, w)
		folders, err := t.having(w.in, w.has)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", w.name, err)
		}
		for _, folder := range folders {
			all = append(all, w.of(folder))
		}
	}
	for _, s := range all {
		if len(s.reads) == 0 {
			return nil, fmt.Errorf("%s: %s reads nothing", stepsFile, s.name)
		}
	}
	return all, nil
}

// add adds a step, or adds its content to the step of the same name. If a template could make a step of that name, the step belongs to the template's
// group, too.
func add(all []step, templates []template, s step) []step {
	at := slices.IndexFunc(all, func(other step) bool { return other.name == s.name })
	for _, t := range templates {
		folder, ok := t.folder(s.name)
		if at >= 0 || !ok {
			continue
		}
		made := t.of(folder)
		if at = slices.IndexFunc(all, func(other step) bool { return made.group != "" && other.group == made.group }); at < 0 {
			at = len(all)
		}
		all = slices.Insert(all, at, made)
	}
	if at < 0 {
		return append(all, s)
	}
	to := &all[at]
	to.reads, to.first, to.needs = slices.Concat(to.reads, s.reads), slices.Concat(to.first, s.first), slices.Concat(to.needs, s.needs)
	to.waits, to.fills = to.waits || s.waits, to.fills || s.fills
	return all
}

// parse reads the lines of stepsFile: a step is at the beginning of a line, and its content in the indented lines below it.
func parse(text string) ([]template, error) {
	var all []template
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) == 0 || strings.HasPrefix(words[0], "#") {
			continue
		}
		if !strings.HasPrefix(line, "\t") {
			all = append(all, template{step: step{name: strings.Join(words, " ")}})
			continue
		}
		if len(all) == 0 {
			return nil, fmt.Errorf("%q belongs to no step", strings.TrimSpace(line))
		}
		last := &all[len(all)-1]
		for _, word := range words {
			kind, rest, _ := strings.Cut(word, ":")
			switch kind {
			case "needs":
				last.needs = append(last.needs, rest)
			case "first":
				last.first = append(last.first, rest)
			case "waits":
				last.waits = true
			case "fills":
				last.fills = true
			case "in":
				last.in = append(last.in, rest)
			case "has":
				has, err := regexp.Compile("(?m)" + rest)
				if err != nil {
					return nil, fmt.Errorf("%s: %w", last.name, err)
				}
				last.has = has
			default:
				last.reads = append(last.reads, word)
			}
		}
	}
	for _, w := range all {
		if strings.Contains(w.name, one) != (w.has != nil && len(w.in) > 0) {
			return nil, fmt.Errorf("%s: in: and has: say for which packages an @ stands, and go with one", w.name)
		}
	}
	return all, nil
}

// having returns the folders of the modules' packages with a test file that contains a text.
func (t *tree) having(modules []string, text *regexp.Regexp) ([]string, error) {
	var folders []string
	for _, file := range t.files {
		folder := path.Dir(file)
		if !strings.HasSuffix(file, "_test.go") || slices.Contains(folders, folder) || !slices.Contains(modules, nearest(t.modules, folder)) ||
			slices.Contains(strings.Split(folder, "/"), "testdata") {
			continue
		}
		content, err := os.ReadFile(filepath.Join(t.root, file))
		if err != nil {
			return nil, err
		}
		if text.Match(content) {
			folders = append(folders, folder)
		}
	}
	slices.Sort(folders)
	return folders, nil
}
