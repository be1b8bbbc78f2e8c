// Gather lists the parts that the program consists of, with versions and licences. It writes the list to NOTICE, and the list with the text of each
// licence to the file that package licenses embeds. Its argument is the root of the repository. The modules are those of all systems that toolsrv is
// built for.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/toolsrv/toolsrv/internal/licenses"
	"github.com/toolsrv/toolsrv/internal/script/engine"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: gather ROOT")
		os.Exit(2)
	}
	root := os.Args[1]
	g, err := gather(root)
	if err == nil {
		err = errors.Join(os.WriteFile(filepath.Join(root, noticeFile), g.notice, 0o644), os.WriteFile(filepath.Join(root, textsFile), g.texts, 0o644))
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "gather: %v\n", err)
		os.Exit(1)
	}
}

const (
	noticeFile = "NOTICE"
	textsFile  = "internal/licenses/modules.txt"
)

// A gathered has the contents of both files.
type gathered struct{ notice, texts []byte }

// A part is a work with a licence of its own.
type part struct {
	name, version string
	license       string // an SPDX expression
	text          string
}

func gather(root string) (*gathered, error) {
	modules, err := modulesOf(root)
	if err != nil {
		return nil, err
	}
	own, err := os.ReadFile(filepath.Join(root, "LICENSE"))
	if err != nil {
		return nil, err
	}
	goroot, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, err
	}
	library, err := textOf(strings.TrimSpace(string(goroot)))
	if err != nil {
		return nil, err
	}
	inside, err := inEngines(root)
	if err != nil {
		return nil, err
	}
	pages, err := inPages(root)
	if err != nil {
		return nil, err
	}
	self := part{name: "toolsrv", license: "Apache-2.0", text: string(own)}
	linked := append([]part{{name: "Go's library and runtime", license: "BSD-3-Clause", text: library}}, modules...)

	var notice, texts bytes.Buffer
	notice.WriteString("toolsrv is under the Apache License 2.0: see the file LICENSE. The program contains the work of others, under licences of their own,\nwhich `toolsrv licenses` prints. This is the list, which `make licenses` writes.\n")
	table(&notice, "Linked into the program (mousetrap on Windows only)", linked)
	for _, e := range inside {
		table(&notice, "In the interpreter for "+e.name+", which is in the program and in each tool made from a script", e.parts)
	}
	table(&notice, "In the pages for browsers, which are in the program", pages)
	texts.Write(notice.Bytes())
	for _, p := range append([]part{self}, group(append(linked, pages...))...) {
		fmt.Fprintf(&texts, "%s\n%s\n\n%s\n", licenses.Line, p.name, strings.TrimRight(p.text, " \n\t"))
	}
	return &gathered{notice.Bytes(), texts.Bytes()}, nil
}

// table writes a line for each part: its name, two spaces at least, and its licence.
func table(w io.Writer, title string, parts []part) {
	fmt.Fprintf(w, "\n%s:\n\n", title)
	for _, p := range parts {
		fmt.Fprintf(w, "  %-52s  %s\n", strings.TrimSpace(p.name+" "+p.version), p.license)
	}
}

// group returns one part for each licence text. The part's name lists all parts that have the text.
func group(parts []part) (groups []part) {
	for _, p := range parts {
		title := strings.TrimSpace(p.name + " " + p.version)
		i := slices.IndexFunc(groups, func(g part) bool { return g.text == p.text })
		if i < 0 {
			groups = append(groups, part{name: title, text: p.text})
			continue
		}
		groups[i].name += "\n" + title
	}
	return groups
}

// systems are those for which releases are made.
var systems = [...]string{"linux/amd64", "linux/arm64", "darwin/arm64", "windows/amd64"}

// modulesOf returns the modules that are linked into toolsrv, sorted by name.
func modulesOf(root string) ([]part, error) {
	folders := map[string][]string{} // the folders of a module's packages, the module's own first
	versions := map[string]string{}
	for _, system := range systems {
		cmd := exec.Command("go", "list", "-deps", "-json=Dir,Module", "./cmd/toolsrv")
		cmd.Dir = root
		goos, goarch, _ := strings.Cut(system, "/")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOWORK=off", "GOOS="+goos, "GOARCH="+goarch)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("list what toolsrv is made of for %s: %w", system, err)
		}
		for decoder := json.NewDecoder(bytes.NewReader(out)); decoder.More(); {
			var p struct {
				Dir    string
				Module *struct {
					Path, Version, Dir string
					Main               bool
				}
			}
			if err := decoder.Decode(&p); err != nil {
				return nil, err
			}
			if p.Module == nil || p.Module.Main {
				continue
			}
			m := p.Module
			versions[m.Path] = m.Version
			for _, dir := range []string{m.Dir, p.Dir} {
				if !slices.Contains(folders[m.Path], dir) {
					folders[m.Path] = append(folders[m.Path], dir)
				}
			}
		}
	}
	var parts []part
	for path, dirs := range folders {
		var text string
		for i, dir := range dirs {
			more, err := textOf(dir)
			if err != nil {
				return nil, err
			}
			if i == 0 && more == "" {
				return nil, fmt.Errorf("%s has no licence file", path)
			}
			text += more
		}
		license := classify(text)
		if license == "" {
			return nil, fmt.Errorf("gather doesn't know the licence of %s: read it, and add it to classify", path)
		}
		parts = append(parts, part{path, versions[path], license, text})
	}
	slices.SortFunc(parts, func(a, b part) int { return strings.Compare(a.name, b.name) })
	return parts, nil
}

var licenseFile = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice)(\.(md|txt))?$`)

// textOf returns the text of a folder's licence files.
func textOf(dir string) (string, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return "", err
	}
	var text string
	for _, e := range entries {
		if !licenseFile.MatchString(e.Name()) || !e.Type().IsRegular() {
			continue
		}
		content, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return "", err
		}
		text += strings.TrimSpace(strings.ReplaceAll(string(content), "\r\n", "\n")) + "\n\n"
	}
	return text, nil
}

// classify returns the SPDX identifier of a licence, found by words that no other licence has, or "".
func classify(text string) string {
	words := strings.Join(strings.Fields(text), " ")
	for _, known := range [][2]string{
		{"Apache License Version 2.0, January 2004", "Apache-2.0"},
		{"Licensed under the Apache License, Version 2.0", "Apache-2.0"}, // a notice that names the licence, in place of its text
		{"Mozilla Public License Version 2.0", "MPL-2.0"},
		{"Permission is hereby granted, free of charge, to any person obtaining a copy", "MIT"},
		{"Neither the name of", "BSD-3-Clause"},
		{"Redistributions in binary form must reproduce the above copyright", "BSD-2-Clause"},
		{"Permission to use, copy, modify, and/or distribute this software for any purpose", "ISC"},
	} {
		if strings.Contains(words, known[0]) {
			return known[1]
		}
	}
	return ""
}

// inPages returns the libraries that the command "make pages" has copied for the pages.
func inPages(root string) ([]part, error) {
	text, err := os.ReadFile(filepath.Join(root, "internal/console/lib/parts.json"))
	if err != nil {
		return nil, err
	}
	var listed []struct{ Name, Version, License, Text string }
	if err := json.Unmarshal(text, &listed); err != nil {
		return nil, fmt.Errorf("read the libraries of the pages: %w", err)
	}
	var parts []part
	for _, l := range listed {
		if classify(l.Text) == "" || l.License == "" {
			return nil, fmt.Errorf("gather doesn't know the licence of %s: read it, and add it to classify", l.Name)
		}
		parts = append(parts, part{l.Name, l.Version, l.License, l.Text})
	}
	return parts, nil
}

// An interpreter describes the sources of an engine.
type interpreter struct {
	name  string
	parts []part
}

// inEngines returns what the engines contain. Their recipes gather the texts; the versions are those that the recipes pin.
func inEngines(root string) ([]interpreter, error) {
	list, err := engine.Carried().List()
	if err != nil {
		return nil, err
	}
	versions := map[string]string{}
	for _, about := range list {
		name, version, _ := strings.Cut(about.Version, " ")
		versions[name] = version
	}
	for file, pattern := range map[string]string{
		"sdk/python/engine/sources.txt":      `(?m)^(zlib) .*_(?:[0-9.]+dfsg\+really)?([0-9.]+)\.orig`,
		"sdk/python/engine/requirements.txt": `(?m)^(tzdata)==(\S+)`,
		"sdk/engines/cache.sh":               `(?m)^(zig)_version=(\S+)`,
	} {
		content, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			return nil, err
		}
		m := regexp.MustCompile(pattern).FindSubmatch(content)
		if m == nil {
			return nil, fmt.Errorf("%s has no version that matches %s", file, pattern)
		}
		versions[string(m[1])] = string(m[2])
	}
	libc := []part{
		{name: "wasi-libc, of zig", version: versions["zig"], license: "Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT"},
		{name: "musl, of wasi-libc", license: "MIT"},
	}
	all := []interpreter{
		{"JavaScript and TypeScript", append([]part{
			{name: "QuickJS-ng", version: versions["quickjs-ng"], license: "MIT"},
			{name: "zig, with what its compiler links", version: versions["zig"], license: "MIT"},
		}, libc...)},
		{"Python", append([]part{
			{name: "CPython", version: versions["cpython"], license: "PSF-2.0"},
			{name: "what CPython contains, according to its own list", license: "several, with CPython's"},
			{name: "Expat, of CPython", license: "MIT"},
			{name: "zlib", version: versions["zlib"], license: "Zlib"},
			{name: "tzdata", version: versions["tzdata"], license: "Apache-2.0"},
		}, libc...)},
	}
	return all, nil
}
