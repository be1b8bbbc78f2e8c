package hostcall

import (
	"fmt"
	"reflect"
)

// A Grant is what a tool is allowed of one set of functions.
type Grant struct {
	// Module is the set's import module.
	Module string
	// Value is of a type that the set defines. Calls share it, so it must be safe for concurrent use. If it has no method Equal(any) bool, values are
	// compared by ==, or deeply if they can't be.
	Value any
}

// A Filter is a grant's value that filters what a guest says. It removes what must not leave the host, such as a secret that the tool uses without
// seeing it. The sandbox applies it to results, failures, log lines and progress reports before they leave the sandbox.
type Filter interface {
	// Filter returns b without what must not leave: b itself, or another slice that is no longer than b. It must not change b. who is the principal on
	// whose behalf the guest runs, as [Call.Principal] returns it.
	Filter(b []byte, who fmt.Stringer) []byte
}

// A Screen is a grant's value that filters what other guests tell a guest. It removes what must not reach that guest, such as a secret that the tool
// uses without seeing it.
type Screen interface {
	// Screen returns b without what must not reach the guest: b itself, or another slice that is no longer than b. It must not change b. who is as in
	// [Filter].
	Screen(b []byte, who fmt.Stringer) []byte
}

// Equal reports whether two grants allow the same.
func (g Grant) Equal(other Grant) bool {
	if g.Module != other.Module {
		return false
	}
	if v, ok := g.Value.(interface{ Equal(other any) bool }); ok {
		return v.Equal(other.Value)
	}
	if !reflect.ValueOf(g.Value).Comparable() || !reflect.ValueOf(other.Value).Comparable() {
		return reflect.DeepEqual(g.Value, other.Value)
	}
	return g.Value == other.Value
}
