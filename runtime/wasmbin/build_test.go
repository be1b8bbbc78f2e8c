package wasmbin_test

import "slices"

// A module for a test is put together from these; nothing checks it.

// module returns header and sections.
func module(sections ...[]byte) []byte {
	return append([]byte("\x00asm\x01\x00\x00\x00"), slices.Concat(sections...)...)
}

// section returns a section of that id.
func section(id byte, content ...[]byte) []byte {
	body := slices.Concat(content...)
	return slices.Concat([]byte{id}, leb(len(body)), body)
}

// custom returns a custom section.
func custom(name, content string) []byte { return section(0, str(name), []byte(content)) }

// vec returns a vector: the number of elements, and these.
func vec(elements ...[]byte) []byte { return append(leb(len(elements)), slices.Concat(elements...)...) }

// str returns a name.
func str(s string) []byte { return append(leb(len(s)), s...) }

// b returns bytes.
func b(bytes ...byte) []byte { return bytes }

// leb returns n as LEB128.
func leb(n int) []byte {
	var out []byte
	for ; n >= 0x80; n >>= 7 {
		out = append(out, byte(n)|0x80)
	}
	return append(out, byte(n))
}

// The parts of a module with two imports, one function, a memory, a table, a global, and segments.
var (
	types     = section(1, vec(b(0x60, 0, 0), b(0x60, 2, 0x7f, 0x7e, 1, 0x7d)))
	imports   = section(2, vec(slices.Concat(str("env"), str("log"), b(0, 1)), slices.Concat(str("env"), str("g"), b(3, 0x7f, 0))))
	functions = section(3, vec(b(0)))
	tables    = section(4, vec(b(0x70, 1, 1, 2)))
	memories  = section(5, vec(b(1, 1, 4)))
	globals   = section(6, vec(b(0x7f, 1, 0x41, 5, 0x0b)))
	exports   = section(7, vec(append(str("memory"), 2, 0), append(str("run"), 0, 1), append(str("log"), 0, 0), append(str("g"), 3, 1), append(str("t"), 1, 0)))
	start     = section(8, b(1))
	elements  = section(9, vec(slices.Concat(b(0, 0x41, 0, 0x0b), vec(b(1)))))
	dataCount = section(12, b(1))
	code      = section(10, vec(append(leb(4), 1, 2, 0x7f, 0x0b)))
	data      = section(11, vec(slices.Concat(b(0, 0x41, 0, 0x0b), str("hi"))))
	names     = custom("name", string(slices.Concat(b(0), str("\x01m"), b(1, 8, 2, 0, 1, 'a', 1, 2, 'b', 'c'))))
	whole     = module(custom("first", "1"), types, imports, functions, tables, memories, globals, exports, start, elements, dataCount, code, data, names, custom("last", "2"))
)
