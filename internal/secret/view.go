package secret

import (
	"fmt"
	"sync/atomic"

	"github.com/toolsrv/toolsrv/internal/personal"
	"github.com/toolsrv/toolsrv/internal/redact"
)

// A View is the secrets as one grant has them. A grant stands in one configuration, and in those that follow it for as long as they grant
// the same. While it stands, the View has the values of the configuration in force. From then on it keeps the last ones: what a later
// configuration has is not for calls that still run under this grant. It is safe for concurrent use.
type View struct {
	store *Store
	last  atomic.Pointer[Values] // of the last configuration in which the grant stands, which may be about to be published
}

// NewView returns the View of a grant that is new with the configuration of v, which store knows.
func NewView(store *Store, v *Values) *View {
	w := &View{store: store}
	w.last.Store(v)
	return w
}

// Extend makes the grant stand in the configuration of v, too, which is about to be published.
func (w *View) Extend(v *Values) {
	for last := w.last.Load(); last.number < v.number && !w.last.CompareAndSwap(last, v); {
		last = w.last.Load()
	}
}

// Again returns a View for another grant of the same configuration.
func (w *View) Again() *View { return NewView(w.store, w.last.Load()) }

// Has reports whether the secret exists in the last configuration that has the grant.
func (w *View) Has(name string) bool { return w.last.Load().Has(name) }

// values returns the secrets that the grant has at this moment.
func (w *View) values() *Values {
	published := w.store.published()
	last := w.last.Load() // after published: a grant that stands in that has been extended before
	if published != nil && published.number < last.number {
		return published
	}
	return last
}

// Secret returns the secret with that name. The error says which one there is not.
func (w *View) Secret(name string) (string, error) {
	value, ok := w.values().named[name]
	if !ok {
		return "", fmt.Errorf("there is no secret %q: add it to a source in [secrets]", name)
	}
	return value, nil
}

// Own returns a caller's own secret with that name, and false where it has none.
func (w *View) Own(name string, of personal.ID) (string, bool) { return w.values().Own(name, of) }

// Redactor is [Store.Redactor].
func (w *View) Redactor(n Names) *redact.Redactor { return w.store.Redactor(n) }

// RedactorsOf is [Store.RedactorsOf].
func (w *View) RedactorsOf(id personal.ID, n Names) redact.Chain { return w.store.RedactorsOf(id, n) }

// Equal reports whether the other one is a View of the same store, so that one grant can go on in the place of another.
func (w *View) Equal(other any) bool {
	o, ok := other.(*View)
	return ok && o.store == w.store
}
