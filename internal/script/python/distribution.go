package python

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A distribution is an installed library.
type distribution struct {
	site, folder string // its folder, and the name of its .dist-info
}

// active returns the virtual environment in use. If reading is restricted to a root, there is none.
func (c *collector) active() string {
	if c.disk.root != nil {
		return ""
	}
	return os.Getenv("VIRTUAL_ENV")
}

var separators = regexp.MustCompile(`[-_.]+`)

// normalized returns a library's name as package indexes compare it.
func normalized(name string) string {
	return strings.ToLower(separators.ReplaceAllString(name, "-"))
}

// distributions adds the libraries in a folder, by their normalized names.
func (d *disk) distributions(site string, found map[string]distribution) error {
	names, err := d.list(site)
	if err != nil {
		return fmt.Errorf("%s can't be read: %w", site, err)
	}
	for _, name := range names {
		stem, ok := strings.CutSuffix(name, ".dist-info")
		if !ok {
			continue
		}
		own, _, _ := strings.Cut(stem, "-")
		found[normalized(own)] = distribution{site, name}
	}
	return nil
}

// A loader collects libraries, each of them once. If an extra is requested later, it adds what the extra needs.
type loader struct {
	*collector

	installed map[string]distribution
	done      map[string][]string // the extras requested so far
	pure      map[string]bool
}

// load collects a library and what it needs. by names the library that needs it, or is empty.
func (l *loader) load(r requirement, by string) error {
	name := normalized(r.name)
	extras, again := l.done[name]
	if again && !slices.ContainsFunc(r.extras, func(extra string) bool { return !slices.Contains(extras, extra) }) {
		return nil
	}
	l.done[name] = append(extras, r.extras...)
	dist, ok := l.installed[name]
	if !ok {
		who := "pyproject.toml names"
		if by != "" {
			who = by + " needs"
		}
		return fmt.Errorf("%s the dependency %s, which is not installed in the virtual environment: pip install %s", who, r.name, r.name)
	}
	metadata, err := l.disk.read(filepath.Join(dist.site, dist.folder, "METADATA"))
	if err != nil {
		return fmt.Errorf("the METADATA of %s can't be read: %w", r.name, err)
	}
	header := headerOf(metadata)
	if !again {
		err = l.files(r.name, dist)
	}
	if err != nil {
		return err
	}
	l.add(dist.folder+"/METADATA", header)
	for _, needed := range requirementsIn(header) {
		next, err := parseRequirement(needed)
		if err != nil || !next.applies(r.extras) || normalized(next.name) == ourselves {
			continue // pip has already refused broken ones
		}
		if err := l.load(next, r.name); err != nil {
			return err
		}
	}
	return nil
}

// files collects the files that the library's RECORD lists.
func (l *loader) files(name string, dist distribution) error {
	record, err := l.disk.read(filepath.Join(dist.site, dist.folder, "RECORD"))
	if err != nil {
		return fmt.Errorf("the dependency %s has no RECORD of its files: install it with pip", name)
	}
	if l.disk.isFile(filepath.Join(dist.site, dist.folder, "direct_url.json")) {
		if text, err := l.disk.read(filepath.Join(dist.site, dist.folder, "direct_url.json")); err == nil && bytes.Contains(text, []byte(`"editable"`)) {
			return fmt.Errorf("the dependency %s is installed in editable form, so its files are elsewhere: pass their folder with --with instead", name)
		}
	}
	rows := csv.NewReader(bytes.NewReader(record))
	rows.FieldsPerRecord = -1
	for {
		row, err := rows.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("the RECORD of the dependency %s: %w", name, err)
		}
		if err := l.file(name, dist, row[0]); err != nil {
			return err
		}
	}
}

func (l *loader) file(name string, dist distribution, file string) error {
	file = filepath.ToSlash(file)
	folder, base := path.Split(file)
	switch {
	case !filepath.IsLocal(file) || path.Clean(file) != file:
		return nil // a program, or a manual page
	case strings.HasPrefix(file, dist.folder+"/") || strings.Contains("/"+folder, "/__pycache__/") || isLeftOut(base):
		return nil
	case isCompiled(base):
		if l.pure[normalized(name)] {
			return nil
		}
		return fmt.Errorf("the dependency %s has compiled code (%s), which the sandbox can't run: use a package in pure Python instead,\n"+
			"or, if it works without that code, leave it out with pure = [%q] in [tool.toolsrv] of pyproject.toml", name, file, name)
	}
	data, err := l.disk.read(filepath.Join(dist.site, filepath.FromSlash(file)))
	if err != nil {
		return fmt.Errorf("%s of the dependency %s can't be read: %w", file, name, err)
	}
	top, _, _ := strings.Cut(file, "/")
	l.known[strings.TrimSuffix(top, ".py")] = true
	l.add(file, data)
	return nil
}

// offer records the names by which libraries can be imported, so that libraries that are imported come with the script. A library that is not
// installed is not offered: importing it fails when the script runs, unless the script can do without it.
func (l *loader) offer(dependencies []string) {
	for _, dependency := range dependencies {
		r, err := parseRequirement(dependency)
		dist, installed := l.installed[normalized(r.name)]
		if err != nil || !installed || normalized(r.name) == ourselves || !r.applies(nil) {
			continue
		}
		record, err := l.disk.read(filepath.Join(dist.site, dist.folder, "RECORD"))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(record)) {
			file, _, _ := strings.Cut(line, ",")
			top, _, _ := strings.Cut(filepath.ToSlash(file), "/")
			if name, _, _ := strings.Cut(top, "."); isIdentifier(name) { // the name of a package, a module, or a compiled module
				l.offered[name] = func() error { return l.load(r, "") }
			}
		}
	}
}

// headerOf returns a METADATA without the description, which may be a whole manual.
func headerOf(metadata []byte) []byte {
	metadata = bytes.ReplaceAll(metadata, []byte("\r\n"), []byte("\n"))
	if header, _, found := bytes.Cut(metadata, []byte("\n\n")); found {
		return append(bytes.Clone(header), '\n')
	}
	return metadata
}

// requirementsIn returns what the library needs, according to its METADATA.
func requirementsIn(header []byte) []string {
	var out []string
	lines := bufio.NewScanner(bytes.NewReader(header))
	for lines.Scan() {
		if needed, ok := strings.CutPrefix(lines.Text(), "Requires-Dist:"); ok {
			out = append(out, strings.TrimSpace(needed))
		}
	}
	return out
}
