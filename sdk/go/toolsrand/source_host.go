//go:build tinygo.wasm

package toolsrand

import "github.com/toolsrv/toolsrv/sdk/go/internal/random"

// read fills b with the host's randomness.
func read(b []byte) error {
	_, err := random.Reader{}.Read(b)
	return err
}
