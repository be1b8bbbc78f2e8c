package precedence

import (
	"fmt"

	"github.com/toolsrv/toolsrv/internal/state"
)

const (
	// Form is the version of the record's format in a state.
	Form byte = 1
	// MostShared bounds the bytes of names in a record. A tenth is left for the JSON around them.
	MostShared = state.MaxValue / 10 * 9
)

// A shared is a Precedence in a state.
type shared struct {
	WaitsFor Precedence `json:"waits_for"`
}

// Encode returns a Precedence as a record for the state.
func (p Precedence) Encode() ([]byte, error) {
	value, err := state.Encode(Form, shared{p})
	if err == nil && len(value) > state.MaxValue {
		err = fmt.Errorf("the record of which file has which path has %d bytes; at most %d are allowed", len(value), state.MaxValue)
	}
	return value, err
}

// Decode reads a record of a state. It must not be trusted: whoever may write to the state may have written it. Decode leaves out what contradicts
// itself, in the same way on all servers.
func Decode(value []byte) (Precedence, error) {
	var r shared
	if err := state.Decode(value, Form, &r); err != nil {
		return nil, err
	}
	return Precedence{}.With(r.WaitsFor.Sorted()), nil
}
