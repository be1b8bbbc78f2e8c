package assemble

import (
	"bytes"
	"slices"
)

const (
	i32 = 0x7f
	add = 0x6a
)

// Live is a function that keeps values on the operand stack across branches: a compiler that looks at each value for each branch takes time in
// proportion to values times branches.
func Live(values, branches int) Body {
	code := bytes.Repeat(slices.Concat(Const(64), load), values)
	code = append(code, bytes.Repeat(If(LocalGet(0), nil), branches)...)
	return Body{Params: 1, Results: 1, Code: append(code, bytes.Repeat(op(add), values-1)...)}
}

// Straight is a function without branches, with that many values on the operand stack.
func Straight(values int) Body {
	code := bytes.Repeat(slices.Concat(Const(64), load), values)
	return Body{Params: 1, Results: 1, Code: append(code, bytes.Repeat(op(add), values-1)...)}
}

// Fills is a function that keeps values on the operand stack across memory.fill instructions with a constant length, which compilers turn into
// loops.
func Fills(values, fills int) Body {
	code := bytes.Repeat(slices.Concat(Const(64), load), values)
	code = append(code, bytes.Repeat(slices.Concat(Const(64), LocalGet(0), Const(8), []byte{0xfc, 11, 0}), fills)...)
	return Body{Params: 1, Results: 1, Code: append(code, bytes.Repeat(op(add), values-1)...)}
}

// TableFills is a function that fills a table that many times. Only a tool with elements has a table.
func TableFills(fills int) Body {
	code := bytes.Repeat(slices.Concat(Const(0), []byte{0xd0, 0x70}, Const(1), []byte{0xfc, 17, 0}), fills)
	return Body{Params: 1, Results: 1, Code: append(code, LocalGet(0)...)}
}

// Minima is a function that computes that many minima of floating-point numbers.
func Minima(minima int) Body {
	const convert, minimum, truncate = 0xb7, 0xa4, 0xaa
	code := slices.Concat(LocalGet(0), op(convert), bytes.Repeat(slices.Concat(LocalGet(1), op(minimum)), minima), op(truncate))
	return Body{Params: 1, Results: 1, Locals: []Group{{1, 0x7c}}, Code: code}
}

// Locals is a function that uses its locals before and after branches.
func Locals(locals, branches int) Body {
	var code []byte
	for i := range locals {
		code = slices.Concat(code, Const(64), load, LocalSet(1+i))
	}
	code = append(code, bytes.Repeat(If(LocalGet(0), nil), branches)...)
	code = append(code, Const(0)...)
	for i := range locals {
		code = slices.Concat(code, LocalGet(1+i), op(add))
	}
	return Body{Params: 1, Results: 1, Locals: []Group{{locals, i32}}, Code: code}
}

// Ordinary is a function of a few hundred instructions like those of a compiler, with a loop and branches; number is part of the code.
func Ordinary(number int) Body {
	step := func(n int) []byte {
		return slices.Concat(
			LocalGet(1), Const(int32(number)), op(add), LocalGet(2), op(0x73), LocalSet(3), // xor
			If(slices.Concat(LocalGet(3), Const(int32(n)), op(0x49)), // lt_u
				slices.Concat(LocalGet(3), Const(4096), op(0x70), LocalGet(1), store)), // rem_u
			LocalGet(3), Const(1023), op(0x71), load, LocalGet(2), op(0x6c), LocalSet(1)) // and, mul
	}
	var code []byte
	for n := range 6 {
		code = append(code, step(n)...)
	}
	code = append(code, 0x03, 0x40) // loop
	for n := range 3 {
		code = append(code, step(7+n)...)
	}
	code = slices.Concat(code, LocalGet(2), Const(1), op(add), []byte{0x22, 2}, LocalGet(0), op(0x49), []byte{0x0d, 0, 0x0b},
		LocalGet(1))
	return Body{Params: 1, Results: 1, Locals: []Group{{3, i32}}, Code: code}
}

// Moved is a function that never ends if it is called with 0. It sets that many vectors in an if that it never enters, so the compiled code moves all
// of them in each round of its short loop.
func Moved(vectors int) Body {
	var sets, gets []byte
	for i := range vectors {
		sets = slices.Concat(sets, LocalGet(0), []byte{0xfd, 17}, LocalSet(1+i)) // i32x4.splat
		gets = slices.Concat(gets, LocalGet(1+i), []byte{0xfd, 81})              // v128.xor
	}
	code := slices.Concat([]byte{0x02, 0x40, 0x03, 0x40}, If(LocalGet(0), sets), LocalGet(0), []byte{0x0d, 1, 0x0c, 0, 0x0b, 0x0b}, // leave, or again
		Const(0), []byte{0xfd, 17}, gets, []byte{0xfd, 27, 0}) // i32x4.extract_lane
	return Body{Params: 1, Results: 1, Locals: []Group{{vectors, 0x7b}}, Code: code}
}

var load = []byte{0x28, 2, 0}

// Endless is a function that never returns.
func Endless() Body {
	return Body{Params: 1, Results: 1, Code: append([]byte{0x03, 0x40, 0x0c, 0x00, 0x0b}, Const(0)...)}
}
