//go:build tinygo.wasm

package toolsrv

// settle does nothing.
func settle() {}
