//go:build wasm_unknown

package toolsrand

import (
	"fmt"
	"unsafe"
)

// The host offers WASI's function to every module, also where the compiler knows no WASI.
//
//go:wasmimport wasi_snapshot_preview1 random_get
func randomGet(ptr unsafe.Pointer, size uint32) uint32

// read fills b with the host's randomness.
func read(b []byte) error {
	if errno := randomGet(unsafe.Pointer(unsafe.SliceData(b)), uint32(len(b))); errno != 0 {
		return fmt.Errorf("random_get: error %d", errno)
	}
	return nil
}
