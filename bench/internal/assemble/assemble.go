// Package assemble writes modules by hand, so that an attack needs no compiler, and can use modules that no compiler makes.
package assemble

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/toolsrv/toolsrv/internal/manifest"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
)

// The host functions, by their index: every module imports them all.
const (
	inputSize = iota
	inputRead
	outputWrite
	log
	pollOneoff
	imported // the index of toolsrv_call; a Tool's own functions come after it
)

// The memory layout is that of a compiled guest: a stack of 1 MiB that grows down, then data, then the input.
const (
	stackTop = 1 << 20
	waitAt   = stackTop + 64   // a subscription of poll_oneoff
	eventAt  = stackTop + 128  // what it answers
	inputAt  = stackTop + 1024 // the input
	pages    = 19
	page     = 64 << 10
)

// A Tool is a module with one tool, which gives back its input.
type Tool struct {
	Name      string
	Namespace string
	Number    int32 // part of the code, so that modules with different numbers share no compiled code

	Room  int   // by how many bytes a call grows its memory before it reads its input
	Wait  int64 // how many milliseconds a call waits
	Grow  int   // by how many bytes a call grows its memory, which it fills
	Lines int   // how many times a call logs
	Line  int   // how many zero bytes each line has

	Elements []int  // sizes of passive element segments; a call uses the first
	Passive  int    // size of a passive data segment, which nothing compresses; a call uses it
	Bodies   []Body // further functions
	Runs     bool   // a call calls the first body with 0
	Manifest []byte // in place of the manifest of one tool
}

// A Body is a function of a tool. It is never called, unless it is the first one and the tool says so.
type Body struct {
	Params, Results int // of i32
	Locals          []Group
	Code            []byte // without its end
}

// A Group is a number of locals of one type.
type Group struct {
	Count int
	Type  byte
}

// Module returns the module with its manifest.
func (t Tool) Module() ([]byte, error) {
	out := []byte("\x00asm\x01\x00\x00\x00")
	section := func(id byte, items ...[]byte) {
		if len(items) > 0 {
			content := vector(items...)
			out = append(append(append(out, id), Unsigned(len(content))...), content...)
		}
	}
	types := [][]byte{
		signature(0, 1), // input_size
		signature(1, 0), // input_read
		signature(2, 0), // output_write
		signature(3, 0), // log
		signature(4, 1), // poll_oneoff
		signature(1, 1), // toolsrv_call
	}
	functions := [][]byte{Unsigned(5)}
	code := [][]byte{function(nil, t.call())}
	known := map[[2]int]int{}
	for _, b := range t.Bodies {
		kind, ok := known[[2]int{b.Params, b.Results}]
		if !ok {
			kind = len(types)
			known[[2]int{b.Params, b.Results}] = kind
			types = append(types, signature(b.Params, b.Results))
		}
		functions = append(functions, Unsigned(kind))
		code = append(code, function(b.Locals, b.Code))
	}
	section(1, types...)
	section(2,
		hostFunction("toolsrv_v1", "input_size", 0),
		hostFunction("toolsrv_v1", "input_read", 1),
		hostFunction("toolsrv_v1", "output_write", 2),
		hostFunction("toolsrv_v1", "log", 3),
		hostFunction("wasi_snapshot_preview1", "poll_oneoff", 4))
	section(3, functions...)
	if len(t.Elements) > 0 {
		section(4, []byte{0x70, 0x00, 1})
	}
	section(5, append([]byte{0}, Unsigned(pages)...))
	section(6, slices.Concat([]byte{0x7f, 1}, Const(stackTop), []byte{0x0b}))
	section(7, append(name("memory"), 2, 0), append(name("toolsrv_call"), 0, imported))
	var segments [][]byte
	for _, n := range t.Elements {
		// Passive element segments, each of which contains the first function that many times.
		segments = append(segments, slices.Concat([]byte{1, 0}, Unsigned(n), make([]byte, n)))
	}
	section(9, segments...)
	if t.Passive > 0 {
		out = append(out, 12, 1, 2) // the number of data segments
	}
	section(10, code...)
	wait := make([]byte, 48)
	wait[16] = 1 // the monotonic clock
	for i := range 8 {
		wait[24+i] = byte(t.Wait * 1e6 >> (8 * i))
	}
	data := [][]byte{slices.Concat([]byte{0}, Const(waitAt), []byte{0x0b}, Unsigned(len(wait)), wait)}
	if t.Passive > 0 {
		noise := make([]byte, t.Passive)
		seed := [32]byte{byte(t.Number), byte(t.Number >> 8), byte(t.Number >> 16), byte(t.Number >> 24)}
		_, _ = rand.NewChaCha8(seed).Read(noise) // never fails, by its documentation
		data = append(data, slices.Concat([]byte{1}, Unsigned(t.Passive), noise))
	}
	section(11, data...)

	if t.Manifest != nil {
		return wasmbin.SetCustom(out, manifest.Section, t.Manifest)
	}
	var said bytes.Buffer
	fmt.Fprintf(&said, `{"abi":1,"namespace":%q,"tools":[{"name":%q,"description":"Gives back its input.","parameters":{"type":"object"}}]}`,
		t.Namespace, t.Name)
	return wasmbin.SetCustom(out, manifest.Section, said.Bytes())
}

// call returns the code of toolsrv_call, which uses its parameter, the number of the tool, as a counter.
func (t Tool) call() []byte {
	code := slices.Concat(
		// Like compiled code, it writes a frame on the stack, and something into the data.
		GlobalGet(0), Const(64), op(0x6b), GlobalSet(0),
		GlobalGet(0), Call(inputSize), store,
		Const(stackTop), Const(t.Number), store,
		grow(t.Room),
		Const(inputAt), Call(inputRead))
	if t.Grow > 0 {
		code = slices.Concat(code,
			grow(t.Grow),
			Const(pages*page), Const(1), Const(int32(t.Grow)), []byte{0xfc, 11, 0})
	}
	if len(t.Elements) > 0 {
		// This copies nothing, but makes the module need its segments at run time.
		code = slices.Concat(code, Const(0), Const(0), Const(0), []byte{0xfc, 12, 0, 0})
	}
	if t.Passive > 0 {
		code = slices.Concat(code, Const(0), Const(0), Const(0), []byte{0xfc, 8, 1, 0}) // the same
	}
	if t.Lines > 0 {
		code = slices.Concat(code,
			Const(int32(t.Lines)), LocalSet(0),
			[]byte{0x03, 0x40}, // loop
			Const(1), Const(0), Const(int32(t.Line)), Call(log),
			LocalGet(0), Const(1), op(0x6b), []byte{0x22, 0}, // tee
			[]byte{0x0d, 0}, op(0x0b))
	}
	if t.Runs {
		code = slices.Concat(code, Const(0), Call(imported+1), op(0x1a))
	}
	if t.Wait > 0 {
		code = slices.Concat(code, Const(waitAt), Const(eventAt), Const(1), Const(eventAt+64), Call(pollOneoff), op(0x1a))
	}
	return slices.Concat(code,
		Const(inputAt), GlobalGet(0), []byte{0x28, 2, 0}, Call(outputWrite),
		Const(0))
}

// grow grows the memory, and traps if that fails.
func grow(bytes int) []byte {
	if bytes == 0 {
		return nil
	}
	return If(slices.Concat(Const(int32((bytes+page-1)/page)), []byte{0x40, 0}, Const(-1), op(0x46)), op(0x00))
}

var store = []byte{0x36, 2, 0}

func op(b byte) []byte { return []byte{b} }

// Const returns i32.const.
func Const(n int32) []byte { return append([]byte{0x41}, signed(n)...) }

// Call returns a call of a function.
func Call(index int) []byte { return append([]byte{0x10}, Unsigned(index)...) }

// LocalGet returns local.get.
func LocalGet(index int) []byte { return append([]byte{0x20}, Unsigned(index)...) }

// LocalSet returns local.set.
func LocalSet(index int) []byte { return append([]byte{0x21}, Unsigned(index)...) }

// GlobalGet returns global.get.
func GlobalGet(index int) []byte { return append([]byte{0x23}, Unsigned(index)...) }

// GlobalSet returns global.set.
func GlobalSet(index int) []byte { return append([]byte{0x24}, Unsigned(index)...) }

// If returns an if without a result.
func If(condition, then []byte) []byte {
	return slices.Concat(condition, []byte{0x04, 0x40}, then, []byte{0x0b})
}

// Unsigned returns n in LEB128.
func Unsigned(n int) []byte {
	var out []byte
	for {
		b := byte(n & 0x7f)
		if n >>= 7; n == 0 {
			return append(out, b)
		}
		out = append(out, b|0x80)
	}
}

func signed(n int32) []byte {
	var out []byte
	for {
		b := byte(n & 0x7f)
		n >>= 7
		if n == 0 && b&0x40 == 0 || n == -1 && b&0x40 != 0 {
			return append(out, b)
		}
		out = append(out, b|0x80)
	}
}

func vector(items ...[]byte) []byte {
	return append(Unsigned(len(items)), slices.Concat(items...)...)
}

func name(s string) []byte { return append(Unsigned(len(s)), s...) }

// signature returns the function type with that many i32 parameters and results.
func signature(params, results int) []byte {
	return slices.Concat([]byte{0x60}, Unsigned(params), bytes.Repeat([]byte{0x7f}, params),
		Unsigned(results), bytes.Repeat([]byte{0x7f}, results))
}

func hostFunction(module, function string, signature int) []byte {
	return slices.Concat(name(module), name(function), []byte{0}, Unsigned(signature))
}

func function(locals []Group, code []byte) []byte {
	groups := make([][]byte, len(locals))
	for i, l := range locals {
		groups[i] = append(Unsigned(l.Count), l.Type)
	}
	body := slices.Concat(vector(groups...), code, []byte{0x0b})
	return append(Unsigned(len(body)), body...)
}
