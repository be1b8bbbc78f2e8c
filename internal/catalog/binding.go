package catalog

import (
	"fmt"
	"slices"
	"strings"

	"github.com/toolsrv/toolsrv/internal/toolfile"
)

// A binding says in which namespaces the files of a source may have tools. It never changes.
type binding struct {
	source  string   // what people call it
	allowed []string // these and those below them; nil: all but those of others
	others  []claimed
}

// A claimed namespace is one that a source names as its own.
type claimed struct{ namespace, by string }

// bind gives each source its binding. A source that names no namespaces may serve all that no other one names.
func bind(feeds []*feed) {
	var all []claimed
	for _, f := range feeds {
		for _, namespace := range f.Namespaces {
			all = append(all, claimed{namespace, f.call()})
		}
	}
	for _, f := range feeds {
		f.binding = binding{source: f.call(), allowed: f.Namespaces}
		if f.Namespaces == nil {
			f.binding.others = all
		}
	}
}

// check returns why a module may not be served, or nil. It must have its manifest.
func (b *binding) check(m *toolfile.Module) error {
	before := ""
	for i, path := range m.Paths() {
		namespace := namespaceOf(path)
		if i > 0 && namespace == before {
			continue
		}
		before = namespace
		if err := b.allows(namespace); err != nil {
			return err
		}
	}
	return nil
}

func (b *binding) allows(namespace string) error {
	if b.allowed != nil {
		if slices.ContainsFunc(b.allowed, func(own string) bool { return isWithin(namespace, own) }) {
			return nil
		}
		return fmt.Errorf("has tools %s, and its source %s may serve %s: move it to another source, or add to the namespaces of its [[source]]",
			within(namespace), b.source, listed(b.allowed))
	}
	for _, c := range b.others {
		if isWithin(namespace, c.namespace) {
			return fmt.Errorf("has tools %s, which the source %s alone may serve: move it there, or give it another namespace", within(namespace), c.by)
		}
	}
	return nil
}

// isWithin reports whether a namespace is another one, or below it. Below the empty one is nothing: it has the tools without a namespace.
func isWithin(namespace, other string) bool {
	return namespace == other || other != "" && strings.HasPrefix(namespace, other+"/")
}

func within(namespace string) string {
	if namespace == "" {
		return "without a namespace"
	}
	return "in the namespace " + namespace
}

// listed says which namespaces a source may serve.
func listed(namespaces []string) string {
	var named []string
	bare := ""
	for _, n := range namespaces {
		if n == "" {
			bare = "tools without a namespace"
			continue
		}
		named = append(named, n)
	}
	if named == nil {
		return bare + " only"
	}
	if bare != "" {
		bare += " and "
	}
	return bare + "only " + strings.Join(named, ", ") + " and what is below"
}
