package weigh_test

import (
	"bytes"
	"slices"

	"github.com/toolsrv/toolsrv/internal/runtime/instrument"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
)

// A code is a function's body while it is written.
type code struct{ b []byte }

func (c *code) op(ops ...byte)       { c.b = append(c.b, ops...) }
func (c *code) index(op byte, n int) { c.b = number(append(c.b, op), n) }
func (c *code) i32(n int)            { c.b = signed(append(c.b, 0x41), n) }
func (c *code) get(local int)        { c.index(0x20, local) }
func (c *code) set(local int)        { c.index(0x21, local) }

// load pushes a value from memory.
func (c *code) load(i int) {
	c.get(0)
	c.index(0x28, 2)
	c.b = number(c.b, i*4)
}

// vector pushes a vector from memory.
func (c *code) vector(i int) {
	c.get(0)
	c.op(0xfd, 0, 4)
	c.b = number(c.b, i*16)
}

// fold turns n values into one.
func (c *code) fold(n int) { c.b = append(c.b, bytes.Repeat([]byte{0x73}, n-1)...) }

func number(b []byte, n int) []byte {
	for ; n >= 0x80; n >>= 7 {
		b = append(b, byte(n)|0x80)
	}
	return append(b, byte(n))
}

func signed(b []byte, n int) []byte {
	for ; n >= 0x40 || n < -0x40; n >>= 7 {
		b = append(b, byte(n)&0x7f|0x80)
	}
	return append(b, byte(n)&0x7f)
}

func vec(items ...[]byte) []byte { return append(number(nil, len(items)), bytes.Join(items, nil)...) }

func section(id byte, content []byte) []byte {
	return append(number([]byte{id}, len(content)), content...)
}

func signature(params, results []byte) []byte {
	return slices.Concat([]byte{0x60}, number(nil, len(params)), params, number(nil, len(results)), results)
}

// The types of each module, and the functions behind the imports.
const (
	typeMain  = iota // (i32) -> (i32)
	typeNone         // () -> ()
	typeWide         // wide of i32 -> wide of i32
	typeBlock        // () -> wide of i32
	typeOne          // () -> (i32)

	functionNone = 0
	functionWide = 1
)

const wide = 200

// A plan is what a module is made of besides the code.
type plan struct {
	imports int // functions () -> ()
	globals int
	locals  int // beside the parameter
	vectors int // locals behind these
}

// module makes a module of functions of the main type, which end by themselves.
func (p plan) module(bodies ...[]byte) []byte {
	i := []byte{0x7f}
	many := bytes.Repeat(i, wide)
	out := []byte("\x00asm\x01\x00\x00\x00")
	out = append(out, section(1, vec(signature(i, i), signature(nil, nil), signature(many, many), signature(nil, many), signature(nil, i)))...)
	if p.imports > 0 {
		out = append(out, section(2, append(number(nil, p.imports), bytes.Repeat([]byte("\x01e\x01f\x00\x01"), p.imports)...))...)
	}
	out = append(out, section(3, append(number(nil, len(bodies)+2), append([]byte{typeNone, typeWide}, bytes.Repeat([]byte{typeMain}, len(bodies))...)...))...)
	out = append(out, section(4, []byte{1, 0x70, 0, 1})...)
	out = append(out, section(5, []byte{1, 0, 1})...)
	if p.globals > 0 {
		out = append(out, section(6, append(number(nil, p.globals), bytes.Repeat([]byte{0x7f, 1, 0x41, 0, 0x0b}, p.globals)...))...)
	}
	all := number(nil, len(bodies)+2)
	add := func(body []byte) { all = append(number(all, len(body)), body...) }
	add([]byte{0, 0x10, byte(p.imports % 128), 0x0b}) // calls itself, or what is imported
	var w code
	w.op(0)
	for l := range wide {
		w.get(l)
	}
	w.op(0x0b)
	add(w.b)
	var locals []byte
	switch {
	case p.vectors > 0:
		locals = append(number(append(number([]byte{2}, p.locals), 0x7f), p.vectors), 0x7b)
	default:
		locals = append(number([]byte{1}, p.locals), 0x7f)
	}
	for _, b := range bodies {
		add(slices.Concat(locals, b, []byte{0x0b}))
	}
	return append(out, section(10, all)...)
}

// rewrite parses a module and rewrites it.
func rewrite(module []byte) (*instrument.Rewritten, error) {
	m, err := wasmbin.Parse(module)
	if err != nil {
		return nil, err
	}
	return instrument.Rewrite(m)
}
