package openapi

import (
	"encoding/json"
	"maps"
	"slices"
)

// A security holds the security schemes that the document requires. It never changes.
type security struct {
	schemes     map[string]json.RawMessage
	requirement map[string][]string // one that names all schemes, because a request must meet each
}

// security returns what is required at the moment.
func (d *Door) security() security {
	s := security{schemes: d.mux.Security(), requirement: map[string][]string{}}
	for name := range s.schemes {
		s.requirement[name] = []string{}
	}
	return s
}

// equal reports whether two values of the same Mux require the same.
func (s security) equal(other security) bool {
	return slices.Equal(slices.Sorted(maps.Keys(s.schemes)), slices.Sorted(maps.Keys(other.schemes)))
}

// secure rebuilds the documents if what is required has changed. A change in the meantime calls it again.
func (d *Door) secure() {
	d.mu.Lock()
	defer d.mu.Unlock()
	old := d.state.Load()
	if old == nil || old.security.equal(d.security()) {
		return
	}
	next := *old
	d.describe(&next)
	d.state.Store(&next)
}
