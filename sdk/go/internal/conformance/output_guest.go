//go:build wasip1 || tinygo.wasm

package main

import "unsafe"

// outputWrite is the host's, which an author never calls.
//
//go:wasmimport toolsrv_v1 output_write
func outputWrite(ptr unsafe.Pointer, size uint32)
