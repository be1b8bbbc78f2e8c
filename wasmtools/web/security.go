package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
)

// A Dependency is a condition that every request but those for /healthz and /readyz must meet.
//
// A Dependency may also have a method SecurityScheme() (name string, scheme json.RawMessage): a name of the
// characters A-Z a-z 0-9 . _ - and an OpenAPI security scheme, a JSON object. They go into the documents, and so
// does the requirement. Where it holds at times only, two more methods say when: Required() bool, which takes no lock,
// and Subscribe(changed func()) (unsubscribe func()), which has changed called before the change of Required returns.
// A Dependency made by package auth has all three.
type Dependency interface {
	// Check returns nil, or why the request is refused: an *wasmtools.Error is told to the client, any other
	// error counts as internal and is not shown. It must not read the body, and is called concurrently.
	Check(r *http.Request) error
}

// A described is a Dependency that documents tell of.
type described interface {
	SecurityScheme() (name string, scheme json.RawMessage)
}

// A conditional is a described Dependency that does not always ask for something.
type conditional interface {
	Required() bool
	Subscribe(changed func()) (unsubscribe func())
}

// A scheme is what one dependency says to documents.
type scheme struct {
	name string
	text json.RawMessage
	on   conditional // nil: always required
}

// schemesOf returns what the dependencies say.
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
			panic(fmt.Sprintf("web.NewMux: the security scheme %q of Dependencies[%d] needs a name of the characters A-Z a-z 0-9 . _ - and a JSON object", name, i))
		}
		s := scheme{name: name, text: slices.Clone(text)}
		s.on, _ = d.(conditional)
		all = append(all, s)
	}
	return all
}

// Security returns the OpenAPI security schemes that are required at this moment, by name. Each of them must be met.
func (m *Mux) Security() map[string]json.RawMessage {
	schemes := map[string]json.RawMessage{}
	for _, s := range m.schemes {
		if s.on == nil || s.on.Required() {
			schemes[s.name] = s.text
		}
	}
	return schemes
}

// SubscribeSecurity has changed called after each change of what Security returns, as the Subscribe method of each
// dependency does. The returned function ends the subscriptions.
func (m *Mux) SubscribeSecurity(changed func()) (unsubscribe func()) {
	var ends []func()
	for _, s := range m.schemes {
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
