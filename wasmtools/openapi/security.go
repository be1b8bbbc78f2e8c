package openapi

import (
	"encoding/json"
	"maps"
	"slices"
)

// A security is what the document says of the schemes that are required at one moment. It never changes.
type security struct {
	schemes     map[string]json.RawMessage
	requirement map[string][]string // of all schemes: each dependency must be met
}

// security returns that of this moment.
func (d *Door) security() security {
	s := security{schemes: d.mux.Security(), requirement: map[string][]string{}}
	for name := range s.schemes {
		s.requirement[name] = []string{}
	}
	return s
}

// equal reports whether two of the same Mux say the same.
func (s security) equal(other security) bool {
	return slices.Equal(slices.Sorted(maps.Keys(s.schemes)), slices.Sorted(maps.Keys(other.schemes)))
}

// secure makes the documents of this moment's security, if it is another one. A change that comes while it works calls it
// again.
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
