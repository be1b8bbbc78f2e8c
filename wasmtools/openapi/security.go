package openapi

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/toolsrv/toolsrv/wasmtools"
)

// A security holds the security schemes that the document requires. It never changes.
type security struct {
	schemes     map[string]json.RawMessage
	requirement map[string][]string // one that names all schemes, because a request must meet each
}

// security returns what is required at the moment under a generation.
func (d *Door) security(g *wasmtools.Generation) security {
	s := security{schemes: d.mux.Security(g), requirement: map[string][]string{}}
	for name := range s.schemes {
		s.requirement[name] = []string{}
	}
	return s
}

// equal reports whether two values of the same Mux require the same.
func (s security) equal(other security) bool {
	return slices.Equal(slices.Sorted(maps.Keys(s.schemes)), slices.Sorted(maps.Keys(other.schemes)))
}

// secure rebuilds the documents of the newest state, published or about to be, if what is required has changed. A change in the
// meantime calls it again.
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
