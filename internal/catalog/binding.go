package catalog

import (
	"fmt"
	"strings"

	"github.com/toolsrv/toolsrv/internal/toolfile"
)

// A binding says in which namespaces the files of a source may have tools. It never changes.
type binding struct {
	source  string   // the source's name in messages
	allowed []string // these namespaces and those below them; if nil, all namespaces that no other source claims
	others  []claimed
}

// nearest returns the nearest claim of another source on a namespace, if it is nearer than this source's own claim.
func (b *binding) nearest(namespace, own string, has bool) (c claimed, ok bool) {
	for _, other := range b.others {
		if isWithin(namespace, other.namespace) && (!has || len(other.namespace) > len(own)) && (!ok || len(other.namespace) > len(c.namespace)) {
			c, ok = other, true
		}
	}
	return c, ok
}

// A claimed namespace is one that a source names as its own.
type claimed struct{ namespace, by string }

// bind gives each source its binding. A source that names no namespaces may serve all that no other one names. If one source names a namespace and
// another one a namespace below it, the nearer one decides.
func bind(feeds []*feed) {
	for _, f := range feeds {
		f.binding = binding{source: f.call(), allowed: f.Namespaces}
		for _, other := range feeds {
			for _, namespace := range other.Namespaces {
				if other != f {
					f.binding.others = append(f.binding.others, claimed{namespace, other.call()})
				}
			}
		}
	}
}

// check returns why a module may not be served, or nil. The module must have its manifest.
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
	own, has := "", false
	for _, one := range b.allowed {
		if isWithin(namespace, one) && (!has || len(one) > len(own)) {
			own, has = one, true
		}
	}
	if b.allowed != nil && !has {
		return fmt.Errorf("has tools %s, and its source %s may serve %s: move it to another source, or extend the namespaces of its [[source]]",
			within(namespace), b.source, listed(b.allowed))
	}
	if c, ok := b.nearest(namespace, own, has); ok {
		return fmt.Errorf("has tools %s, which only the source %s may serve: move it there, or give it another namespace", within(namespace), c.by)
	}
	return nil
}

// isWithin reports whether a namespace is the same as another one, or below it. Nothing is below the empty namespace, which is for tools without one.
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
