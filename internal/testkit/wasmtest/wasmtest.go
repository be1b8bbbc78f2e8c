// Package wasmtest puts modules together for tests, byte by byte, without checking them.
package wasmtest

import "slices"

// Module returns a module: the header and the given sections.
func Module(sections ...[]byte) []byte {
	return append([]byte("\x00asm\x01\x00\x00\x00"), slices.Concat(sections...)...)
}

// Section returns a section of that id.
func Section(id byte, content ...[]byte) []byte {
	body := slices.Concat(content...)
	return slices.Concat([]byte{id}, LEB(len(body)), body)
}

// Custom returns a custom section.
func Custom(name, content string) []byte { return Section(0, Str(name), []byte(content)) }

// Vec returns a vector: the number of elements, and the elements.
func Vec(elements ...[]byte) []byte { return append(LEB(len(elements)), slices.Concat(elements...)...) }

// Str returns a name.
func Str(s string) []byte { return append(LEB(len(s)), s...) }

// Bytes returns them.
func Bytes(bytes ...byte) []byte { return bytes }

// LEB returns n as LEB128.
func LEB(n int) []byte {
	var out []byte
	for ; n >= 0x80; n >>= 7 {
		out = append(out, byte(n)|0x80)
	}
	return append(out, byte(n))
}
