package openapi

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
)

// A described is a Dependency that the document tells of.
type described interface {
	SecurityScheme() (name string, scheme json.RawMessage)
}

// A conditional is a described Dependency that does not always ask for something.
type conditional interface {
	Required() bool
	Subscribe(changed func()) (unsubscribe func())
}

// A scheme is what one dependency says in the document.
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
			panic(fmt.Sprintf("openapi.NewApp: Dependencies[%d] is nil", i))
		}
		d, ok := d.(described)
		if !ok {
			continue
		}
		name, text := d.SecurityScheme()
		var object map[string]json.RawMessage
		if !valid.MatchString(name) || json.Unmarshal(text, &object) != nil || object == nil {
			panic(fmt.Sprintf("openapi.NewApp: the security scheme %q of Dependencies[%d] needs a name of the characters A-Z a-z 0-9 . _ - and a JSON object", name, i))
		}
		s := scheme{name: name, text: slices.Clone(text)}
		s.on, _ = d.(conditional)
		all = append(all, s)
	}
	return all
}

// A security is what the document says of the schemes that are required at one moment. It never changes.
type security struct {
	schemes     map[string]json.RawMessage
	requirement map[string][]string // of all schemes: each dependency must be met
}

// security returns that of this moment.
func (a *App) security() security {
	s := security{schemes: map[string]json.RawMessage{}, requirement: map[string][]string{}}
	for _, scheme := range a.schemes {
		if scheme.on == nil || scheme.on.Required() {
			s.schemes[scheme.name] = scheme.text
			s.requirement[scheme.name] = []string{}
		}
	}
	return s
}

// equal reports whether two of the same App say the same.
func (s security) equal(other security) bool {
	if len(s.schemes) != len(other.schemes) {
		return false
	}
	for name := range s.schemes {
		if _, ok := other.schemes[name]; !ok {
			return false
		}
	}
	return true
}

// secure makes the documents of this moment's security, if it is another one. A change that comes while it works calls it
// again.
func (a *App) secure() {
	a.mu.Lock()
	defer a.mu.Unlock()
	old := a.state.Load()
	if old == nil || old.security.equal(a.security()) {
		return
	}
	next := *old
	a.describe(&next)
	a.state.Store(&next)
}
