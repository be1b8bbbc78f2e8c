// Package toolsrand gives tools randomness that is new in every call.
//
// Every call of a tool begins with a snapshot of its memory, taken after the module was initialised. The top-level
// functions of math/rand and math/rand/v2 draw from a state that is in that snapshot, so they return the same numbers in every
// call. crypto/rand asks the host each time and is as good in a tool as anywhere.
package toolsrand

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
)

// New returns a generator that is seeded from the host's randomness. Call it in the tool's function, not before, and once per call. It is
// not for secrets: use crypto/rand for these. It panics, and so ends the call, if the host gives no randomness. The generator is not safe
// for concurrent use.
func New() *rand.Rand {
	var seed [16]byte
	if err := read(seed[:]); err != nil {
		panic(fmt.Sprintf("toolsrand: the host gives no randomness: %v", err))
	}
	// Not ChaCha8: its core is in assembly, which TinyGo does not link.
	return rand.New(rand.NewPCG(binary.LittleEndian.Uint64(seed[:8]), binary.LittleEndian.Uint64(seed[8:])))
}
