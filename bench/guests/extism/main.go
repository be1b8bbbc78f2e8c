//go:build wasip1

// Command extism does the work of goadd as an Extism plugin, which calls the host directly.
package main

import (
	"encoding/binary"
	"encoding/json"

	"github.com/toolsrv/toolsrv/bench/guests/add"
)

//go:wasmimport extism:host/env input_length
func inputLength() uint64

//go:wasmimport extism:host/env input_load_u8
func inputLoad8(offset uint64) uint32

//go:wasmimport extism:host/env input_load_u64
func inputLoad64(offset uint64) uint64

//go:wasmimport extism:host/env alloc
func alloc(size uint64) uint64

//go:wasmimport extism:host/env store_u8
func store8(offset uint64, value uint32)

//go:wasmimport extism:host/env store_u64
func store64(offset, value uint64)

//go:wasmimport extism:host/env output_set
func outputSet(offset, size uint64)

//go:wasmexport add
func call() int32 {
	var in add.Terms
	if err := json.Unmarshal(input(), &in); err != nil {
		return 1
	}
	text, err := json.Marshal(add.Sum(in))
	if err != nil {
		return 1
	}
	output(text)
	return 0
}

// input reads eight bytes at a time, the most that Extism hands over at once.
func input() []byte {
	text := make([]byte, inputLength())
	at := 0
	for ; at+8 <= len(text); at += 8 {
		binary.LittleEndian.PutUint64(text[at:], inputLoad64(uint64(at)))
	}
	for ; at < len(text); at++ {
		text[at] = byte(inputLoad8(uint64(at)))
	}
	return text
}

func output(text []byte) {
	block := alloc(uint64(len(text)))
	at := 0
	for ; at+8 <= len(text); at += 8 {
		store64(block+uint64(at), binary.LittleEndian.Uint64(text[at:]))
	}
	for ; at < len(text); at++ {
		store8(block+uint64(at), uint32(text[at]))
	}
	outputSet(block, uint64(len(text)))
}

func main() {}
