package secret

import (
	"fmt"
	"sync/atomic"

	"github.com/toolsrv/toolsrv/internal/personal"
	"github.com/toolsrv/toolsrv/internal/redact"
)

// A View gives one grant its secrets. A grant stands in one configuration, and in later ones as long as they grant the same. While it stands, the
// View has the values of the configuration in force. After that it keeps the last values: those of later configurations are not for calls that still
// run under this grant. A View is safe for concurrent use.
type View struct {
	store *Store
	in    atomic.Pointer[standing]
}

// standing says in which configurations a grant stands.
type standing struct {
	last *Values // the values of the last configuration that has been in force, or of the first one
	next *Values // the values of the latest configuration, which may never be in force; nil if none has been made since last
}

// newest returns the values of the latest configuration in which the grant stands, in force or not.
func (s *standing) newest() *Values {
	if s.next != nil {
		return s.next
	}
	return s.last
}

// inForce returns the values of the last configuration that has been in force.
func (s *standing) inForce(published *Values) *Values {
	if s.next != nil && (s.next == published || s.next.wasInForce.Load()) {
		return s.next
	}
	return s.last
}

// NewView returns the View of a grant that first stands in the configuration of v. store must know v.
func NewView(store *Store, v *Values) *View {
	w := &View{store: store}
	w.in.Store(&standing{last: v})
	return w
}

// Extend makes the grant stand in the configuration of v, too, once that configuration is published.
func (w *View) Extend(v *Values) {
	for {
		was := w.in.Load()
		if v.number <= was.newest().number || w.in.CompareAndSwap(was, &standing{was.inForce(w.store.published()), v}) {
			return
		}
	}
}

// precedes reports whether the grant stands in the configuration of v already, or in the one that is in force before it.
func (w *View) precedes(v *Values) bool {
	in := w.in.Load()
	for _, has := range []*Values{in.last, in.next} {
		if has != nil && (has == v || has.number == v.after) {
			return true
		}
	}
	return false
}

// Again returns a View for another grant of the same configuration.
func (w *View) Again() *View { return NewView(w.store, w.Newest()) }

// Newest returns the values of the latest configuration that has the grant, even if that is never in force.
func (w *View) Newest() *Values { return w.in.Load().newest() }

// Has reports whether the latest configuration that has the grant has the secret.
func (w *View) Has(name string) bool { return w.Newest().Has(name) }

// values returns the secrets that the grant can use at this moment.
func (w *View) values() *Values {
	published := w.store.published()
	return w.in.Load().inForce(published) // loaded after published: if the grant stands in that configuration, it was extended before
}

// Secret returns the secret with that name. The error says which one is missing.
func (w *View) Secret(name string) (string, error) {
	value, ok := w.values().named[name]
	if !ok {
		return "", fmt.Errorf("there is no secret %q: add it to a source in [secrets]", name)
	}
	return value, nil
}

// Own returns a caller's own secret with that name, and false if it has none.
func (w *View) Own(name string, of personal.ID) (string, bool) { return w.values().Own(name, of) }

// Redactor is [Store.Redactor].
func (w *View) Redactor(n Names) *redact.Redactor { return w.store.Redactor(n) }

// RedactorsOf is [Store.RedactorsOf].
func (w *View) RedactorsOf(id personal.ID, n Names) redact.Chain { return w.store.RedactorsOf(id, n) }

// Equal reports whether the other View belongs to the same store, so that one grant can replace the other.
func (w *View) Equal(other any) bool {
	o, ok := other.(*View)
	return ok && o.store == w.store
}
