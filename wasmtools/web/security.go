package web

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"

	"github.com/toolsrv/toolsrv/wasmtools"
)

// A described is a Dependency that stands in documents.
type described interface {
	SecurityScheme() (name string, scheme json.RawMessage)
}

// A conditional is a described Dependency that is not always required.
type conditional interface {
	Required() bool
	Subscribe(changed func()) (unsubscribe func())
}

// A scheme is a dependency as it stands in documents.
type scheme struct {
	name string
	text json.RawMessage
	on   conditional // nil: always required
}

// schemesOf returns the schemes of the dependencies.
func schemesOf(dependencies []Dependency) (all []scheme) {
	valid := regexp.MustCompile(`^[a-zA-Z0-9._-]+$`)
	for i, d := range dependencies {
		if d == nil {
			panic(fmt.Sprintf("web.NewMux: Dependencies[%d] is nil", i))
		}
		d, ok := d.(described)
		if !ok {
			continue
		}
		name, text := d.SecurityScheme()
		var object map[string]json.RawMessage
		if !valid.MatchString(name) || json.Unmarshal(text, &object) != nil || object == nil {
			panic(fmt.Sprintf("web.NewMux: the security scheme %q of Dependencies[%d] must have a name of the characters A-Z a-z 0-9 . _ - and be a JSON object", name, i))
		}
		s := scheme{name: name, text: slices.Clone(text)}
		s.on, _ = d.(conditional)
		all = append(all, s)
	}
	return all
}

// Security returns the OpenAPI security schemes that are required at the moment under a generation of the Mux's table, by name. A request
// must meet each of them. Without a table the generation doesn't matter.
func (m *Mux) Security(g *wasmtools.Generation) map[string]json.RawMessage {
	a := admissionOf(g)
	if a == nil {
		a = m.admission.Load()
	}
	schemes := map[string]json.RawMessage{}
	for _, s := range a.schemes {
		if s.on == nil || s.on.Required() {
			schemes[s.name] = s.text
		}
	}
	return schemes
}

// SubscribeSecurity has changed called after each change of what Security returns under one generation, as the Subscribe method of each
// of the Mux's dependencies does. The returned function ends the subscriptions.
func (m *Mux) SubscribeSecurity(changed func()) (unsubscribe func()) {
	var ends []func()
	for _, s := range m.admission.Load().schemes {
		if s.on != nil {
			ends = append(ends, s.on.Subscribe(changed))
		}
	}
	return func() {
		for _, end := range ends {
			end()
		}
	}
}
