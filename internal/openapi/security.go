package openapi

import (
	"slices"

	"github.com/toolsrv/toolsrv/internal/web"
	"github.com/toolsrv/toolsrv/wasmtools"
)

// A security is the document's description of the required credentials. It never changes.
type security struct {
	web.Security
	requirements []map[string][]string // one element for each alternative; a request must satisfy all schemes of one alternative
}

// security returns what is currently required under a generation.
func (d *Door) security(g *wasmtools.Generation) security {
	s := security{Security: d.mux.Security(g)}
	for _, names := range s.Alternatives {
		all := map[string][]string{}
		for _, name := range names {
			all[name] = []string{}
		}
		s.requirements = append(s.requirements, all)
	}
	return s
}

// equal reports whether two values of the same Mux require the same credentials.
func (s security) equal(other security) bool {
	return slices.EqualFunc(s.Alternatives, other.Alternatives, slices.Equal)
}

// secure rebuilds the documents of the newest generation, published or about to be, if what is required has changed. If something changes while
// secure runs, the change calls it again.
func (d *Door) secure() {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.newest == nil {
		return
	}
	if required := d.security(d.newest.generation); !required.equal(d.newest.library.Load().security) {
		d.newest.describe(required)
	}
}
