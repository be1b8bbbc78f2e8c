package python

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"github.com/toolsrv/toolsrv/internal/text"
)

// A project is the part of a pyproject.toml that toolsrv reads.
type project struct {
	folder string
	// Dependencies are the libraries that the script needs, in pip's form: all are put into its tool.
	Dependencies []string
	// Offered are the libraries of the whole project, if it lists none for its tools. A tool gets those that its script imports.
	Offered []string
	// Pure names libraries whose compiled parts are left out, because the libraries work without these parts.
	Pure []string
}

// projectOf returns the project of the nearest folder above a script that has a pyproject.toml, or an empty one.
func (d *disk) projectOf(folder string) (project, error) {
	for {
		path := filepath.Join(folder, "pyproject.toml")
		if d.isFile(path) {
			content, err := d.read(path)
			if err != nil {
				return project{}, fmt.Errorf("pyproject.toml can't be read: %w", err)
			}
			p, err := parseProject(content)
			p.folder = folder
			return p, err
		}
		above := filepath.Dir(folder)
		if above == folder || d.root != nil && folder == d.at {
			return project{}, nil
		}
		folder = above
	}
}

// parseProject reads the part of a pyproject.toml that is for toolsrv, and ignores the rest.
func parseProject(content []byte) (project, error) {
	var file struct {
		Project any `toml:"project"`
		Tool    any `toml:"tool"`
	}
	err := toml.NewDecoder(bytes.NewReader(content)).Decode(&file)
	if broken := (*toml.DecodeError)(nil); errors.As(err, &broken) {
		line, column := broken.Position()
		return project{}, fmt.Errorf("pyproject.toml:%d:%d: %w", line, column, err)
	}
	if err != nil {
		return project{}, fmt.Errorf("pyproject.toml: %w", err)
	}
	tool, ok := tableOf(file.Tool)
	if !ok {
		return project{}, errors.New("pyproject.toml: tool has to be a table, as in [tool.toolsrv]")
	}
	own, ok := tableOf(tool["toolsrv"])
	if !ok {
		return project{}, errors.New("pyproject.toml: toolsrv has to be a table, [tool.toolsrv]")
	}
	var p project
	keys := map[string]*[]string{"dependencies": &p.Dependencies, "pure": &p.Pure}
	known := slices.Sorted(maps.Keys(keys))
	for _, key := range slices.Sorted(maps.Keys(own)) {
		words, ok := keys[key]
		if !ok {
			hint := "the keys are " + strings.Join(known, ", ")
			if near := text.Nearest(key, known); near != "" {
				hint = fmt.Sprintf("did you mean %q?", near)
			}
			return project{}, fmt.Errorf("pyproject.toml: unknown key %q in [tool.toolsrv]: %s", text.Short(key), hint)
		}
		if *words, ok = textsOf(own[key]); !ok {
			return project{}, fmt.Errorf("pyproject.toml: %s in [tool.toolsrv] has to be a list of names in quotes, such as %s = [\"jinja2\"]", key, key)
		}
	}
	if _, chosen := own["dependencies"]; !chosen {
		general, _ := tableOf(file.Project)
		p.Offered, _ = textsOf(general["dependencies"]) // pip says what is wrong with it
	}
	return p, nil
}

// tableOf returns a value of TOML that is a table or missing.
func tableOf(value any) (table map[string]any, ok bool) {
	table, ok = value.(map[string]any)
	return table, ok || value == nil
}

// textsOf returns a value of TOML that is a list of strings.
func textsOf(value any) (texts []string, ok bool) {
	list, ok := value.([]any)
	for _, item := range list {
		word, isText := item.(string)
		texts, ok = append(texts, word), ok && isText
	}
	return texts, ok
}

// libraries collects the libraries that the script's project names, and what these need. Libraries that the project only offers are added when the
// script imports them.
func (c *collector) libraries(folder string) error {
	p, err := c.disk.projectOf(folder)
	if err != nil || len(p.Dependencies) == 0 && len(p.Offered) == 0 {
		return err
	}
	libraries, err := c.environment(p)
	if err != nil {
		return err
	}
	l := &loader{collector: c, installed: libraries, done: map[string][]string{}, pure: map[string]bool{}}
	for _, name := range p.Pure {
		l.pure[normalized(name)] = true
	}
	l.offer(p.Offered)
	for _, dependency := range p.Dependencies {
		r, err := parseRequirement(dependency)
		if err != nil {
			return fmt.Errorf("pyproject.toml: the dependency %q: %w", dependency, err)
		}
		if normalized(r.name) == ourselves {
			continue // the engine has it
		}
		if err := l.load(r, ""); err != nil {
			return err
		}
	}
	return nil
}

// environment returns the distributions of the project's virtual environment, by their normalized names.
func (c *collector) environment(p project) (map[string]distribution, error) {
	places := []string{filepath.Join(p.folder, ".venv"), filepath.Join(p.folder, "venv")}
	if active := c.active(); active != "" {
		places = append(places, active)
	}
	for _, place := range places {
		packages := c.disk.sitePackages(place)
		if len(packages) == 0 {
			continue
		}
		found := map[string]distribution{}
		for _, at := range packages {
			if err := c.disk.distributions(at, found); err != nil {
				return nil, err
			}
		}
		return found, nil
	}
	if len(p.Dependencies) == 0 {
		return nil, nil
	}
	return nil, errors.New("pyproject.toml names dependencies, and there is no virtual environment to take them from:\n" +
		"python3 -m venv .venv && .venv/bin/pip install " + shellWords(p.Dependencies))
}

// sitePackages returns the folders of a virtual environment that hold libraries.
func (d *disk) sitePackages(environment string) []string {
	var out []string
	for _, lib := range []string{"lib", "lib64"} {
		names, err := d.list(filepath.Join(environment, lib))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		for _, name := range names {
			if at := filepath.Join(environment, lib, name, "site-packages"); len(out) == 0 && d.isFolder(at) {
				out = append(out, at)
			}
		}
	}
	if at := filepath.Join(environment, "Lib", "site-packages"); len(out) == 0 && d.isFolder(at) {
		out = append(out, at)
	}
	return out
}

// shellWords returns words as a shell reads them.
func shellWords(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = text.ShellQuote(word)
	}
	return strings.Join(quoted, " ")
}
