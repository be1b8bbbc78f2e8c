package wasmbin_test

import (
	"slices"

	"github.com/toolsrv/toolsrv/internal/testkit/wasmtest"
)

// Parts from which tests build modules, and modules to test with.
var (
	module, section, custom = wasmtest.Module, wasmtest.Section, wasmtest.Custom
	vec, str, b, leb        = wasmtest.Vec, wasmtest.Str, wasmtest.Bytes, wasmtest.LEB

	accepted = wasmtest.Accepted()
	whole    = wasmtest.Whole()

	types     = section(1, vec(b(0x60, 0, 0), b(0x60, 2, 0x7f, 0x7e, 1, 0x7d)))
	imports   = section(2, vec(slices.Concat(str("env"), str("log"), b(0, 1)), slices.Concat(str("env"), str("g"), b(3, 0x7f, 0))))
	functions = section(3, vec(b(0)))
	memories  = section(5, vec(b(1, 1, 4)))
	code      = section(10, vec(append(leb(4), 1, 2, 0x7f, 0x0b)))
	data      = section(11, vec(slices.Concat(b(0, 0x41, 0, 0x0b), str("hi"))))
	names     = custom("name", string(slices.Concat(b(0), str("\x01m"), b(1, 8, 2, 0, 1, 'a', 1, 2, 'b', 'c'))))
)

func functions0(n int) []byte { return section(3, leb(n), make([]byte, n)) }

func bodies(n int) []byte {
	return section(10, leb(n), slices.Repeat([]byte{2, 0, 0x0b}, n))
}
