package wasmtest

import "slices"

// Whole returns a module with every kind of section: two imports, one function, a memory, a table, a global, and segments.
func Whole() []byte {
	types := Section(1, Vec(Bytes(0x60, 0, 0), Bytes(0x60, 2, 0x7f, 0x7e, 1, 0x7d)))
	imports := Section(2, Vec(slices.Concat(Str("env"), Str("log"), Bytes(0, 1)), slices.Concat(Str("env"), Str("g"), Bytes(3, 0x7f, 0))))
	functions := Section(3, Vec(Bytes(0)))
	tables := Section(4, Vec(Bytes(0x70, 1, 1, 2)))
	memories := Section(5, Vec(Bytes(1, 1, 4)))
	globals := Section(6, Vec(Bytes(0x7f, 1, 0x41, 5, 0x0b)))
	exports := Section(7, Vec(append(Str("memory"), 2, 0), append(Str("run"), 0, 1), append(Str("log"), 0, 0), append(Str("g"), 3, 1), append(Str("t"), 1, 0)))
	start := Section(8, Bytes(1))
	elements := Section(9, Vec(slices.Concat(Bytes(0, 0x41, 0, 0x0b), Vec(Bytes(1)))))
	dataCount := Section(12, Bytes(1))
	code := Section(10, Vec(append(LEB(4), 1, 2, 0x7f, 0x0b)))
	data := Section(11, Vec(slices.Concat(Bytes(0, 0x41, 0, 0x0b), Str("hi"))))
	names := Custom("name", string(slices.Concat(Bytes(0), Str("\x01m"), Bytes(1, 8, 2, 0, 1, 'a', 1, 2, 'b', 'c'))))
	return Module(Custom("first", "1"), types, imports, functions, tables, memories, globals, exports, start, elements, dataCount, code, data, names, Custom("last", "2"))
}

// Accepted returns modules that wazero accepts: Whole, and modules with features that Whole does not have.
func Accepted() map[string][]byte {
	types := Section(1, Vec(Bytes(0x60, 0, 0), Bytes(0x60, 2, 0x7f, 0x7e, 1, 0x7d)))
	functions := func(n int) []byte { return Section(3, LEB(n), make([]byte, n)) }
	bodies := func(n int) []byte { return Section(10, LEB(n), slices.Repeat([]byte{2, 0, 0x0b}, n)) }
	tables := Section(4, Vec(Bytes(0x70, 1, 1, 2)))
	return map[string][]byte{
		"empty":                 Module(),
		"padded number":         Module(Section(1, Bytes(0x81, 0x80, 0x80, 0x80, 0), Bytes(0x60, 0, 0))),
		"padded size":           Module(slices.Concat(Bytes(1, 0x84, 0x80, 0x80, 0x80, 0), Vec(Bytes(0x60, 0, 0)))),
		"every value type":      Module(Section(1, Vec(Bytes(0x60, 7, 0x7f, 0x7e, 0x7d, 0x7c, 0x7b, 0x70, 0x6f, 0)))),
		"custom without data":   Module(Custom("", ""), types), // wazero can't read this section at the very end
		"two custom of a name":  Module(Custom("a", "1"), Custom("a", "2")),
		"empty vectors":         Module(Section(1, Vec()), Section(2, Vec()), Section(3, Vec()), Section(7, Vec()), Section(9, Vec()), Section(10, Vec()), Section(11, Vec())),
		"constants":             Module(Section(6, Vec(Bytes(0x7e, 0, 0x42, 0x7f, 0x0b), slices.Concat(Bytes(0x7d, 0, 0x43), make([]byte, 4), Bytes(0x0b)), slices.Concat(Bytes(0x7c, 0, 0x44), make([]byte, 8), Bytes(0x0b)), slices.Concat(Bytes(0x7b, 0, 0xfd, 0x0c), make([]byte, 16), Bytes(0x0b)), Bytes(0x6f, 0, 0xd0, 0x6f, 0x0b)))),
		"every form of element": Module(types, functions(3), tables, Section(9, Vec(Bytes(0, 0x41, 0, 0x0b, 1, 0), Bytes(1, 0, 1, 0), Bytes(2, 0, 0x41, 0, 0x0b, 0, 1, 0), Bytes(3, 0, 1, 0), Bytes(4, 0x41, 0, 0x0b, 1, 0xd2, 0, 0x0b), Bytes(5, 0x70, 1, 0xd0, 0x70, 0x0b), Bytes(6, 0, 0x41, 0, 0x0b, 0x70, 1, 0xd2, 0, 0x0b), Bytes(7, 0x70, 1, 0xd2, 0, 0x0b))), bodies(3)),
		"every form of data":    Module(Section(5, Vec(Bytes(1, 1, 4))), Section(12, Bytes(3)), Section(11, Vec(Bytes(0, 0x41, 0, 0x0b, 1, 'x'), Bytes(1, 1, 'y'), Bytes(2, 0, 0x41, 1, 0x0b, 0)))),
		"most locals":           Module(types, functions(1), Section(10, Vec(append(LEB(6), 1, 0xd0, 0x86, 3, 0x7f, 0x0b)))),
		"a name subsection":     Module(Custom("name", "\x00\x02\x01m\x02\x06\x01\x00\x01\x00\x01x\x09\x02zz")),
		"whole":                 Whole(),
	}
}
