//go:build tinygo.wasm

// Package random asks the host for randomness. TinyGo's crypto/rand does not do so on wasip1 each time: it draws from a
// state in memory, which is part of the snapshot that every call begins with.
package random

import (
	"fmt"
	"unsafe"
)

// The host offers WASI's function to every module, also where the compiler knows no WASI.
//
//go:wasmimport wasi_snapshot_preview1 random_get
func randomGet(ptr unsafe.Pointer, size uint32) uint32

// A Reader reads the host's randomness.
type Reader struct{}

// Read fills b.
func (Reader) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	if errno := randomGet(unsafe.Pointer(unsafe.SliceData(b)), uint32(len(b))); errno != 0 {
		return 0, fmt.Errorf("random_get: error %d", errno)
	}
	return len(b), nil
}
