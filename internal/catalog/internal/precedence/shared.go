package precedence

import (
	"fmt"

	"github.com/toolsrv/toolsrv/internal/state"
)

const (
	// Form is the form of the record in a state.
	Form byte = 1
	// MostShared is how many bytes of names are added to one. A tenth is left to what surrounds them.
	MostShared = state.MaxValue / 10 * 9
)

// A shared is a Precedence in a state.
type shared struct {
	WaitsFor Precedence `json:"waits_for"`
}

// Encode returns the record of a Precedence in a state.
func (p Precedence) Encode() ([]byte, error) {
	value, err := state.Encode(Form, shared{p})
	if err == nil && len(value) > state.MaxValue {
		err = fmt.Errorf("the record of which file has which path has %d bytes; at most %d are allowed", len(value), state.MaxValue)
	}
	return value, err
}

// Decode reads a record of a state. Whoever may write to the state may have written it. What contradicts itself is left out, the same on all servers.
func Decode(value []byte) (Precedence, error) {
	var r shared
	if err := state.Decode(value, Form, &r); err != nil {
		return nil, err
	}
	return Precedence{}.With(r.WaitsFor.Sorted()), nil
}
