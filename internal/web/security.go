package web

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"github.com/toolsrv/toolsrv/wasmtools"
	"github.com/toolsrv/toolsrv/wasmtools/auth"
)

// A described is a Dependency that says how clients can satisfy it.
type described interface{ Schemes() []auth.Scheme }

// A challenging Dependency also gives the challenges with which a refused request is answered.
type challenging interface{ Challenges() []string }

// An asking is a challenging Dependency whose challenges depend on the request.
type asking interface {
	ChallengesFor(r *http.Request) []string
}

// A changing is a described Dependency whose schemes change.
type changing interface {
	Subscribe(changed func()) (unsubscribe func())
}

// describedOf returns the dependencies that say how clients can satisfy them. It panics if one is nil, or if a scheme is not valid.
func describedOf(dependencies []Dependency) (all []described) {
	for i, d := range dependencies {
		if d == nil {
			panic(fmt.Sprintf("web.NewMux: Dependencies[%d] is nil", i))
		}
		d, ok := d.(described)
		if !ok {
			continue
		}
		for _, s := range d.Schemes() {
			if err := s.Check(); err != nil {
				panic(fmt.Sprintf("web.NewMux: Dependencies[%d]: %v", i, err))
			}
		}
		all = append(all, d)
	}
	return all
}

// A Security describes the credentials that clients need, for OpenAPI documents.
type Security struct {
	// Schemes are the security schemes by name.
	Schemes map[string]json.RawMessage
	// Alternatives are names of schemes. A request must satisfy all schemes of one alternative. If there are no alternatives, no credentials are
	// needed.
	Alternatives [][]string
}

// Security returns what is currently required under a generation of the Mux's table. Without a table the generation doesn't matter.
func (m *Mux) Security(g *wasmtools.Generation) Security {
	a := admissionOf(g)
	if a == nil {
		a = m.admission
	}
	s := Security{Schemes: map[string]json.RawMessage{}}
	for _, d := range a.described {
		schemes := d.Schemes()
		if len(schemes) == 0 {
			continue
		}
		if s.Alternatives == nil {
			s.Alternatives = [][]string{{}}
		}
		var next [][]string
		for _, before := range s.Alternatives {
			for _, scheme := range schemes {
				s.Schemes[scheme.Name] = scheme.Description
				next = append(next, append(slices.Clone(before), scheme.Name))
			}
		}
		s.Alternatives = next
	}
	return s
}

// challenges returns the values of WWW-Authenticate for a request without valid credentials. They come only from the dependencies: a made-up
// challenge would make clients send credentials that nobody accepts.
func (a *Admission) challenges(r *http.Request) (all []string) {
	for _, d := range a.described {
		var own []string
		if asks, ok := d.(asking); ok {
			own = asks.ChallengesFor(r)
		} else if d, ok := d.(challenging); ok {
			own = d.Challenges()
		}
		for _, challenge := range own {
			if !slices.Contains(all, challenge) {
				all = append(all, challenge)
			}
		}
	}
	return all
}

// SubscribeSecurity calls changed after each change of what Security returns under one generation, as the Subscribe method of each
// of the Mux's dependencies does. The returned function ends the subscriptions.
func (m *Mux) SubscribeSecurity(changed func()) (unsubscribe func()) {
	var ends []func()
	for _, d := range m.admission.described {
		if d, ok := d.(changing); ok {
			ends = append(ends, d.Subscribe(changed))
		}
	}
	return func() {
		for _, end := range ends {
			end()
		}
	}
}
