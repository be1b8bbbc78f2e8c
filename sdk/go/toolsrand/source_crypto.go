//go:build !tinygo.wasm

package toolsrand

import "crypto/rand"

// read fills b with the host's randomness.
func read(b []byte) error {
	_, err := rand.Read(b)
	return err
}
