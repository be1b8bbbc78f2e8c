// Gather copies the files that the pages load from npm packages into the folder lib of package console, compressed, with a list of their licences.
// Its arguments are the folder with the packages and the folder of package console. With -check it compares instead of copying.
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// A library is an npm package, with those of its files that are copied.
type library struct {
	name     string
	files    []file
	licenses []string
}

// A file is copied with edits. They are needed because the pages have no import map, which would be an inline script, and because some files are not
// modules.
type file struct {
	from, to string
	edits    [][2]string // a text that the file has exactly once, and what replaces it
	end      string
}

// libraries are those that the pages use.
var libraries = []library{
	{"htm", []file{{from: "dist/htm.mjs", to: "htm.js"}}, []string{"LICENSE"}},
	{"preact", []file{
		{from: "dist/preact.mjs", to: "preact.js"},
		{from: "hooks/dist/hooks.mjs", to: "hooks.js", edits: [][2]string{{`from"preact"`, `from"./preact.js"`}}},
	}, []string{"LICENSE"}},
	{"swagger-ui-dist", []file{
		{from: "swagger-ui-bundle.js", to: "swagger-ui.js"},
		{from: "swagger-ui.css", to: "swagger-ui.css"},
	}, []string{"LICENSE", "NOTICE", "swagger-ui-bundle.js.LICENSE.txt"}},
	{"uplot", []file{
		{from: "dist/uPlot.iife.min.js", to: "uplot.js", end: "export default uPlot;\n"},
		{from: "dist/uPlot.min.css", to: "uplot.css"},
	}, []string{"LICENSE"}},
}

func main() {
	check := flag.Bool("check", false, "compare instead")
	flag.Parse()
	if flag.NArg() != 2 {
		fmt.Fprintln(os.Stderr, "usage: gather [-check] NODE_MODULES CONSOLE")
		os.Exit(2)
	}
	if err := gather(flag.Arg(0), filepath.Join(flag.Arg(1), "lib"), *check); err != nil {
		fmt.Fprintf(os.Stderr, "gather: %v\n", err)
		os.Exit(1)
	}
}

// A part is what parts.json says about a library.
type part struct {
	Name    string `json:"name"`
	Version string `json:"version"`
	License string `json:"license"`
	Text    string `json:"text"` // of its licence
}

func gather(packages, lib string, check bool) error {
	var parts []part
	known := []string{"parts.json"}
	for _, l := range libraries {
		p, err := l.part(packages)
		if err != nil {
			return err
		}
		parts = append(parts, p)
		for _, f := range l.files {
			text, err := f.read(filepath.Join(packages, l.name))
			if err != nil {
				return err
			}
			known = append(known, f.to+".gz")
			if err := put(filepath.Join(lib, f.to+".gz"), text, check); err != nil {
				return err
			}
		}
	}
	list, err := json.MarshalIndent(parts, "", "\t")
	if err != nil {
		return err
	}
	list = append(list, '\n')
	if name := filepath.Join(lib, "parts.json"); check {
		if old, err := os.ReadFile(name); err != nil || !bytes.Equal(old, list) {
			return errors.Join(err, different(name))
		}
	} else if err := os.WriteFile(name, list, 0o644); err != nil {
		return err
	}
	entries, err := os.ReadDir(lib)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !slices.Contains(known, e.Name()) {
			return fmt.Errorf("%s belongs to no library: delete it", filepath.Join(lib, e.Name()))
		}
	}
	return nil
}

// part returns what the package of a library says about it.
func (l *library) part(packages string) (p part, err error) {
	text, err := os.ReadFile(filepath.Join(packages, l.name, "package.json"))
	if err != nil {
		return p, err
	}
	if err := json.Unmarshal(text, &p); err != nil {
		return p, fmt.Errorf("read the package.json of %s: %w", l.name, err)
	}
	p.Text = ""
	for _, name := range l.licenses {
		text, err := os.ReadFile(filepath.Join(packages, l.name, name))
		if err != nil {
			return p, err
		}
		p.Text += strings.TrimSpace(strings.ReplaceAll(string(text), "\r\n", "\n")) + "\n\n"
	}
	return p, nil
}

// read returns a file with its edits.
func (f *file) read(folder string) ([]byte, error) {
	content, err := os.ReadFile(filepath.Join(folder, f.from))
	if err != nil {
		return nil, err
	}
	text := mapped.ReplaceAllString(string(content), "")
	for _, e := range f.edits {
		if strings.Count(text, e[0]) != 1 {
			return nil, fmt.Errorf("%s does not have %s once: look at what has changed", filepath.Join(folder, f.from), e[0])
		}
		text = strings.Replace(text, e[0], e[1], 1)
	}
	return []byte(strings.TrimRight(text, "\n") + "\n" + f.end), nil
}

// mapped matches a file's link to its source map, which is not served.
var mapped = regexp.MustCompile(`(//|/\*)# sourceMappingURL=[^*\s]*(\*/)?\s*$`)

// put writes a compressed file. It leaves an existing file with the same content as it is, since another compressor may have written other bytes.
func put(name string, text []byte, check bool) error {
	if old, err := os.ReadFile(name); err == nil {
		if r, err := gzip.NewReader(bytes.NewReader(old)); err == nil {
			if same, err := io.ReadAll(r); err == nil && bytes.Equal(same, text) {
				return nil
			}
		}
	}
	if check {
		return different(name)
	}
	var packed bytes.Buffer
	w, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err == nil {
		_, err = w.Write(text)
	}
	if err = errors.Join(err, w.Close()); err != nil {
		return err
	}
	return os.WriteFile(name, packed.Bytes(), 0o644)
}

func different(name string) error {
	return fmt.Errorf("%s is not what the packages have: run make pages, and commit it", name)
}
