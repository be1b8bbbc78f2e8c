package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"

	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/auth"
)

// A Dependency is a condition that every request but those for /healthz and /readyz must meet.
//
// A Dependency may also say who calls, with a method Principal(r *http.Request, current *wasmtools.Principal)
// (*wasmtools.Principal, error). It is called after Check, concurrently like that, with the principal that the dependencies
// before this one found, [wasmtools.Everybody] at first, and returns that one or another, never nil. An error refuses the
// request, as an error of Check does.
//
// A Dependency may also have a method SecurityScheme() (name string, scheme json.RawMessage): a name of the
// characters A-Z a-z 0-9 . _ - and an OpenAPI security scheme, a JSON object. They go into the documents, and so
// does the requirement. Where it holds at times only, two more methods say when: Required() bool, which takes no lock,
// and Subscribe(changed func()) (unsubscribe func()), which has changed called before the change of Required returns.
// A Dependency made by package auth has all of these methods.
type Dependency interface {
	// Check returns nil, or why the request is refused: an *wasmtools.Error is told to the client, any other
	// error counts as internal and is not shown. It must not read the body, and is called concurrently.
	Check(r *http.Request) error
}

// An identifier is a Dependency that says who calls.
type identifier interface {
	Principal(r *http.Request, current *wasmtools.Principal) (*wasmtools.Principal, error)
}

// A dependency is a Dependency with what it can do besides.
type dependency struct {
	check    Dependency // nil: identify checks, too
	identify identifier // nil: the principal stays
}

// dependenciesOf finds out what dependencies can do. Bearer's own Principal does all that its Check does, and looking a token
// up twice would cost a tenth of a call. A type that embeds a Bearer may have a Check of its own, so both are called there.
func dependenciesOf(all []Dependency) []dependency {
	found := make([]dependency, len(all))
	for i, d := range all {
		found[i].identify, _ = d.(identifier)
		if _, both := d.(*auth.Bearer); !both {
			found[i].check = d
		}
	}
	return found
}

// identify returns who makes a request, or why it is refused.
func (m *Mux) identify(r *http.Request) (*wasmtools.Principal, error) {
	principal := wasmtools.Everybody()
	for i := range m.dependencies {
		d := &m.dependencies[i]
		if d.check != nil {
			if err := d.check.Check(r); err != nil {
				return nil, err
			}
		}
		if d.identify == nil {
			continue
		}
		var err error
		if principal, err = d.identify.Principal(r, principal); err != nil {
			return nil, err
		}
		if principal == nil {
			return nil, fmt.Errorf("dependency %d, a %T, returned neither a principal nor an error", i, d.identify)
		}
	}
	return principal, nil
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
