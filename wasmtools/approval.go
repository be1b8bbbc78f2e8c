package wasmtools

import (
	"slices"
	"sync"

	"github.com/toolsrv/toolsrv/internal/pattern"
)

// MayCall reports whether the principal may call a tool as it is now. It reports what [Principal.May] does, unless only scopes with a
// fingerprint name the tool: then one of these must have the tool's fingerprint. Doors list the tools that MayCall allows. A call that May
// allows and MayCall doesn't fails with CodeToolChanged, so that the client is told why.
func (p *Principal) MayCall(r *Route) bool {
	if p == nil {
		return false
	}
	if p.all || p.matches(r.Path) {
		return true
	}
	return slices.ContainsFunc(p.approved, func(a pattern.Approval) bool { return a.Path == r.Path && a.Fingerprint == r.Fingerprint() })
}

// Approved returns the fingerprints in the principal's scopes for the tool at a path such as "/math/add".
func (p *Principal) Approved(path string) (fingerprints []string) {
	if p == nil {
		return nil
	}
	for _, a := range p.approved {
		if a.Path == path {
			fingerprints = append(fingerprints, a.Fingerprint)
		}
	}
	return fingerprints
}

// A fingerprint is computed when somebody first asks for it.
type fingerprint struct {
	once sync.Once
	text string
}

// Fingerprint returns the tool's [Tool.Fingerprint]. For a tool in a table, it is computed only once.
func (r *Route) Fingerprint() string {
	if r.print == nil {
		return r.Tool.Fingerprint()
	}
	r.print.once.Do(func() { r.print.text = r.Tool.Fingerprint() })
	return r.print.text
}
