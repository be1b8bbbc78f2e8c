package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/toolsrv/toolsrv/internal/keys"
	"github.com/toolsrv/toolsrv/internal/naming"
	"github.com/toolsrv/toolsrv/internal/text"
	"github.com/toolsrv/toolsrv/wasmtools/config/key"
)

const (
	maxSources    = 100
	maxNamespaces = 100 // of a source
)

// sourceTables reads the tables [[source]].
func sourceTables(d *document, to *[]Source, directory string) keys.Reader {
	return tableList(d, "source", maxSources, "put the folders into one", to, func(place string, values map[string]any, s *Source) {
		d.readTable(place, values, key.Table{
			"name":       keys.Word(&s.Name, `a string such as "acme"`, keys.Name),
			"directory":  keys.Word(&s.Directory, "a path", keys.Path(directory, true)),
			"scripts":    keys.Boolean(&s.Scripts),
			"namespaces": namespaces(&s.Namespaces),
			"prefix":     keys.Word(&s.Prefix, `a namespace such as "acme"`, namespace),
		})
		if _, ok := values["directory"]; !ok {
			d.fail(place, errors.New(`directory is missing: name the folder that holds the tools, as in directory = "/srv/acme"`))
		}
		if s.Prefix != "" && s.Namespaces != nil && !slices.ContainsFunc(s.Namespaces, func(n string) bool { return overlap(n, s.Prefix) }) {
			d.fail(join(place, "prefix"), errors.New("is in none of its namespaces, so nothing would be served: add it there, or leave one of the two out"))
		}
	})
}

// namespaces reads those of a source.
func namespaces(to *[]string) keys.Reader {
	read := keys.Words(to, func(s string) (string, error) {
		if s == "" { // of tools without one
			return s, nil
		}
		return namespace(s)
	})
	return func(value any) error {
		if err := read(value); err != nil {
			return err
		}
		switch n := len(*to); {
		case n == 0:
			return errors.New(`is empty, so nothing would be served: name a namespace such as "acme", or leave the key out`)
		case n > maxNamespaces:
			return fmt.Errorf("there are %d namespaces; at most %d are allowed: name one that holds several", n, maxNamespaces)
		}
		return nil
	}
}

func namespace(s string) (string, error) {
	if s == "" {
		return "", errors.New(`must not be empty: name a namespace such as "acme"`)
	}
	if above, ok := strings.CutSuffix(s, "/*"); ok && naming.CheckNamespace(above) == nil {
		return "", fmt.Errorf("%q is a pattern: write the namespace alone, which stands for those below it, too", text.Short(s))
	}
	return s, naming.CheckNamespace(s)
}

// overlap reports whether one of two namespaces is the other one, or below it.
func overlap(a, b string) bool {
	return a == b || a != "" && strings.HasPrefix(b, a+"/") || strings.HasPrefix(a, b+"/")
}

// checkSources checks what no two sources may have in common.
func checkSources(d *document, c *Config) {
	directories, names := map[string]bool{c.Tools.Directory: true}, map[string]bool{}
	for i, s := range c.Sources {
		if s.Directory != "" && directories[s.Directory] {
			d.fail(join(index("source", i), "directory"), errors.New("is listed twice: each file is served once, so leave one out"))
		}
		if s.Name != "" && names[s.Name] {
			d.fail(join(index("source", i), "name"), errors.New("is the name of two sources: give each its own"))
		}
		directories[s.Directory], names[s.Name] = true, true
	}
}
