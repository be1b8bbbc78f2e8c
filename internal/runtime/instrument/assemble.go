package instrument

import (
	"fmt"
	"strconv"

	"github.com/toolsrv/toolsrv/internal/runtime/instrument/internal/weigh"
	"github.com/toolsrv/toolsrv/internal/runtime/internal/opcode"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
	"github.com/toolsrv/toolsrv/internal/text"
)

func (w *rewriter) writeTypes(r *wasmbin.Reader) []byte {
	n := 0
	if r.Left() > 0 {
		n = int(r.U32("types"))
	}
	out := wasmbin.AppendU32(nil, uint32(n+addedTypes+len(w.blockAt)))
	out = append(out, r.Data[r.Pos:r.End]...)
	i := byte(wasmbin.I32)
	out = append(out, 0x60, 0, 0, 0x60, 1, i, 1, i, 0x60, 1, i, 0, 0x60, 3, i, i, i, 0)
	return append(out, w.blocks...)
}

// blockOf returns the type of a block with these results. It may have to add a function type for that.
func (w *rewriter) blockOf(results []wasmbin.ValueType) []byte {
	switch len(results) {
	case 0:
		return []byte{opcode.BlockEmpty}
	case 1:
		return []byte{byte(results[0])}
	}
	key := make([]byte, len(results))
	for i, t := range results {
		key[i] = byte(t)
	}
	at, ok := w.blockAt[string(key)]
	if !ok {
		at = len(w.types) + addedTypes + len(w.blockAt)
		w.blockAt[string(key)] = at
		w.blocks = append(wasmbin.AppendU32(append(w.blocks, 0x60, 0), uint32(len(key))), key...)
	}
	return wasmbin.AppendS64(nil, int64(at))
}

// writeImports adds imports after the guest's own, so that the indices of imported functions stay the same.
func (w *rewriter) writeImports(r *wasmbin.Reader) []byte {
	n := 0
	if r.Left() > 0 {
		n = int(r.U32("imports"))
	}
	out := wasmbin.AppendU32(nil, uint32(n+added))
	out = append(out, r.Data[r.Pos:r.End]...)
	for _, f := range [...]struct {
		name string
		kind uint32
	}{importRefill: {RefillFunc, typeMap}, importOverflow: {OverflowFunc, typeMap}} {
		out = wasmbin.AppendName(wasmbin.AppendName(out, MeterModule), f.name)
		out = wasmbin.AppendU32(append(out, byte(wasmbin.KindFunction)), w.addedType(f.kind))
	}
	return out
}

func (w *rewriter) writeFunctions(*wasmbin.Reader) []byte {
	types, _ := w.ownFunctions()
	own := w.functions[w.imported:]
	out := wasmbin.AppendU32(nil, uint32(len(own)+len(types)))
	for _, t := range own {
		out = wasmbin.AppendU32(out, t)
	}
	for _, t := range types {
		out = wasmbin.AppendU32(out, t)
	}
	return out
}

// writeTables writes the tables, each with a maximum.
func (w *rewriter) writeTables(r *wasmbin.Reader) []byte {
	if r.Left() == 0 {
		return nil
	}
	n := int(r.U32("tables"))
	out := wasmbin.AppendU32(nil, uint32(n))
	for range n {
		start := r.Pos
		if r.Data[r.Pos] == 0x40 {
			r.Fail(start, "a table with an initial value is %w: fill it with an element segment", wasmbin.ErrUnsupported)
			return nil
		}
		t := r.Table()
		most := uint64(maxTable)
		if t.HasMax {
			most = min(most, t.Max)
		}
		w.tableMost += most
		out = append(out, r.Data[start], 1)
		out = wasmbin.AppendU32(wasmbin.AppendU32(out, uint32(t.Min)), uint32(most))
	}
	return out
}

// writeGlobals writes the globals without their number. closeGlobals adds the number, and more globals.
func (w *rewriter) writeGlobals(r *wasmbin.Reader) []byte {
	w.declared = make([]bool, len(w.functions))
	w.taken = make([]bool, len(w.functions))
	n := 0
	if r.Left() > 0 {
		n = int(r.U32("globals"))
	}
	var out []byte
	w.own = n
	imported := w.globals - n
	for i := range n {
		kind := r.ValueType("a global")
		mutable := r.Byte("a global's mutability")
		out = append(out, byte(kind), mutable)
		if ahead := *r; kind == wasmbin.I32 && mutable == 1 {
			if first, ok := ahead.I32Constant(); ok && first > 0 && first%16 == 0 {
				w.pointers = append(w.pointers, pointer{imported + i, len(w.out.Globals), first})
			}
		}
		out = w.copyConstant(r, out)
		if mutable == 0 {
			continue
		}
		w.mutable++
		switch kind {
		case wasmbin.I32, wasmbin.I64, wasmbin.F32, wasmbin.F64:
			w.out.Globals = append(w.out.Globals, Global{globalExport + strconv.Itoa(imported+i), kind})
		default:
			if w.out.Fresh == "" {
				w.out.Fresh = fmt.Sprintf("global %d is a mutable %s", imported+i, kind)
			}
		}
	}
	for range addedGlobals {
		out = append(out, byte(wasmbin.I32), 1, opcode.I32Const, 0, opcode.End)
	}
	return out
}

// closeGlobals adds a constant global for each function that ref.func names, as wazero makes a new object whenever a ref.func is executed, and keeps
// it as long as the instance. In a loop, that would take 48 bytes of the host's memory each time, without a limit.
func (w *rewriter) closeGlobals(written []byte) []byte {
	w.out.AllGlobals = w.own + len(w.refOrder)
	out := append(wasmbin.AppendU32(nil, uint32(w.out.AllGlobals+addedGlobals)), written...)
	for _, index := range w.refOrder {
		out = wasmbin.AppendU32(append(out, byte(wasmbin.FuncRef), 0, opcode.RefFunc), w.shift(index))
		out = append(out, opcode.End)
	}
	return out
}

// copyConstant copies a constant expression and adjusts the indices of functions in it. It marks these functions as declared, and as possible
// elements of a table.
func (w *rewriter) copyConstant(r *wasmbin.Reader, out []byte) []byte {
	start := r.Pos
	var in wasmbin.Instruction
	for {
		if in.ReadConstant(r); r.Err != nil {
			return nil
		}
		switch in.Op {
		case opcode.RefFunc:
			w.declare(r, in.Start, in.A)
			out = wasmbin.AppendU32(append(out, opcode.RefFunc), w.shift(in.A))
		case opcode.GlobalGet:
			if int64(in.A) >= int64(w.globals) {
				r.Fail(in.Start, "global %d is not declared: there are %d", in.A, w.globals)
			}
			fallthrough
		default:
			out = append(out, r.Data[in.Start:r.Pos]...)
		case opcode.I32Add, opcode.I32Sub, opcode.I32Mul, opcode.I64Add, opcode.I64Sub, opcode.I64Mul: // the compiler does not know these
			r.Fail(in.Start, "instruction %#x is %w in a constant expression", in.Op, wasmbin.ErrUnsupported)
		case opcode.End:
			if in.Start == start {
				r.Fail(start, "a constant expression is empty")
			}
			return append(out, opcode.End)
		}
	}
}

// declare records that a function may be in a table, and that ref.func may name it.
func (w *rewriter) declare(r *wasmbin.Reader, at int, index uint32) {
	if int64(index) >= int64(len(w.functions)) {
		r.Fail(at, "function %d is not declared: there are %d", index, len(w.functions))
		return
	}
	w.declared[index], w.taken[index] = true, true
}

// writeExports writes the guest's exports, whose indices Parse has checked, and then those that are added.
func (w *rewriter) writeExports(r *wasmbin.Reader) []byte {
	n := 0
	if r.Left() > 0 {
		n = int(r.U32("exports"))
	}
	out := make([]byte, 0, r.End-r.Pos+64*(len(w.out.Globals)+addedGlobals))
	for range n {
		name := r.Name("an export's name")
		kind := r.Byte("an export's kind")
		index := r.U32("an export's index")
		switch {
		case wasmbin.Kind(kind) == wasmbin.KindFunction:
			w.declared[index] = true
			index = w.shift(index)
		case wasmbin.Kind(kind) == wasmbin.KindGlobal && string(name) == stackPointer:
			w.stackExport = int(index) + 1
		}
		out = wasmbin.AppendU32(append(wasmbin.AppendName(out, string(name)), kind), index)
	}
	global := func(name string, index int) {
		out = wasmbin.AppendU32(append(wasmbin.AppendName(out, name), byte(wasmbin.KindGlobal)), uint32(index))
		n++
	}
	for _, g := range w.out.Globals {
		index, _ := strconv.Atoi(g.Name[len(globalExport):])
		global(g.Name, index)
	}
	global(FuelGlobal, w.globals+globalFuel)
	global(StackGlobal, w.globals+globalStack)
	global(RefusedGlobal, w.globals+globalRefused)
	if start := w.m.Open(wasmbin.SectionStart); start.Left() > 0 {
		w.out.Start = startExport
		out = wasmbin.AppendU32(append(wasmbin.AppendName(out, startExport), byte(wasmbin.KindFunction)), w.shift(start.U32("the start function's index")))
		n++
	}
	return append(wasmbin.AppendU32(nil, uint32(n)), out...)
}

func (w *rewriter) writeElements(r *wasmbin.Reader) []byte {
	if r.Left() == 0 {
		return nil
	}
	w.elements = int(r.U32("element segments"))
	out := wasmbin.AppendU32(make([]byte, 0, r.Left()+r.Left()/4), uint32(w.elements))
	for range w.elements {
		start := r.Pos
		form := r.U32("an element segment's form")
		out = wasmbin.AppendU32(out, form)
		if form&wasmbin.ElementPassive == 0 {
			table := uint32(0)
			if form&wasmbin.ElementExplicit != 0 {
				table = r.U32("a table's index")
				out = wasmbin.AppendU32(out, table)
			}
			if int64(table) >= int64(len(w.tables)) {
				r.Fail(start, "table %d is not declared: there are %d", table, len(w.tables))
				return nil
			}
			out = w.copyConstant(r, out)
		}
		if form&(wasmbin.ElementPassive|wasmbin.ElementExplicit) != 0 {
			out = append(out, r.Byte("a type"))
		}
		n := int(r.U32("elements"))
		out = wasmbin.AppendU32(out, uint32(n))
		if w.out.Elements += n; w.out.Elements+w.elements > maxInit {
			r.Fail(start, "the module has at least %d elements and element segments; the limit is %d, since every instance pays for each of them", w.out.Elements+w.elements, maxInit)
			return nil
		}
		for range n {
			if form&wasmbin.ElementExpressions != 0 {
				out = w.copyConstant(r, out)
			} else {
				at := r.Pos
				index := r.U32("a function's index")
				w.declare(r, at, index)
				out = wasmbin.AppendU32(out, w.shift(index))
			}
			if r.Err != nil {
				return nil
			}
		}
	}
	w.out.Elements += w.elements
	return out
}

// writeData takes the content out of active data segments. Each becomes an empty segment, just as WebAssembly empties an active segment once it has
// been copied to the memory.
func (w *rewriter) writeData(r *wasmbin.Reader) []byte {
	if r.Left() == 0 {
		return nil
	}
	n := int(r.U32("data segments"))
	out := wasmbin.AppendU32(nil, uint32(n))
	for i := range n {
		start := r.Pos
		form := r.U32("a data segment's form")
		if form == 2 {
			if memory := r.U32("a memory's index"); memory != 0 {
				r.Fail(start, "memory %d is not declared", memory)
			}
		}
		offset := uint32(0)
		if form != 1 {
			var ok bool
			if offset, ok = r.I32Constant(); !ok {
				r.Fail(start, "data segment %d has an offset that is %w: it must be one i32.const", i, wasmbin.ErrUnsupported)
			}
			if len(w.memories) == 0 {
				r.Fail(start, "data segment %d is active, but there is no memory", i)
			}
		}
		content := r.Bytes(int(r.U32("a data segment's size")), "a data segment")
		if r.Err != nil {
			return nil
		}
		if form != 1 {
			w.out.Data = append(w.out.Data, DataSegment{offset, content})
			content = nil
		}
		w.segments = append(w.segments, len(content))
		out = wasmbin.AppendU32(append(out, 1), uint32(len(content)))
		if !w.dry {
			out = append(out, content...)
		}
	}
	return out
}

// writeCode reads all bodies, and then writes them.
func (w *rewriter) writeCode(r *wasmbin.Reader) []byte {
	n := 0
	if r.Left() > 0 {
		n = int(r.U32("bodies"))
	}
	size := r.Left()
	w.bodies = make([]function, n)
	w.flat = make([]uint8, n)
	w.seen = make([]int, len(w.functions)+len(w.types))
	for i := range w.bodies {
		f := &w.bodies[i]
		length := int(r.U32("a body's size"))
		f.start, f.end = r.Pos, r.Pos+length
		t := w.types[w.functions[w.imported+i]]
		f.results, f.locals = t.Results, len(t.Params)
		b := w.body(i)
		for range int(b.U32("runs of locals")) {
			f.locals += int(b.U32("a number of locals"))
			b.ValueType("locals")
		}
		f.code = b.Pos
		w.flat[i] = uint8(measureFlat(b, f.locals))
		r.Pos = f.end
	}
	w.ruler = weigh.NewRuler(&weigh.Module{Types: w.signatures(), Functions: w.functions})
	for i := range w.bodies {
		w.current = i
		b := w.body(i)
		b.Pos = w.bodies[i].code
		if w.analyse(b, &w.bodies[i]); b.Err != nil {
			r.Err = b.Err
			return nil
		}
	}
	w.chargeStack()
	types, own := w.ownFunctions()
	if w.dry {
		size = 0
	}
	out := wasmbin.AppendU32(make([]byte, 0, size+size/2), uint32(n+len(own)))
	gone := 0 // bytes of custom sections that are dropped
	m := &meter{w: w}
	scale := w.scale(types)
	for i := range w.bodies {
		w.current = i
		f := &w.bodies[i]
		m.f, m.r = f, w.body(i)
		written := w.data[f.start:f.end]
		if w.flat[i] > 0 && f.stack == 0 {
			out = append(wasmbin.AppendU32(out, uint32(len(written))), written...)
		} else {
			out = m.write(out)
			written = m.out
		}
		if gone+len(out) > maxCode {
			r.Fail(f.start, "with metering added the module's code has more than %d MB: split the module, or optimise it with the compiler or wasm-opt", maxCode>>20)
			return nil
		}
		if w.weigh(scale, m.r, f, written); m.r.Err != nil {
			r.Err = m.r.Err
			return nil
		}
		if w.dry {
			gone += len(out)
			out = out[:0]
		}
	}
	w.total(r, gone+len(out))
	for _, body := range own {
		out = append(wasmbin.AppendU32(out, uint32(len(body))), body...)
	}
	return out
}

// body returns a reader of a function's body.
func (w *rewriter) body(i int) *wasmbin.Reader {
	return &wasmbin.Reader{Data: w.data, Pos: w.bodies[i].start, End: w.bodies[i].end, Section: "function " + strconv.Itoa(w.imported+i) + ", code"}
}

// maxName is how many bytes of a name are kept: the error of a trap names up to 30 functions.
const maxName = 128

// writeNames returns the content of a name section with the names of all functions. Names of locals are dropped, since nothing shows them.
func (w *rewriter) writeNames(r *wasmbin.Reader) []byte {
	module := ""
	var names []byte
	n, ours := 0, false
	add := func(index uint32, name string) {
		names = wasmbin.AppendName(wasmbin.AppendU32(names, index), name)
		n++
	}
	imports := func() {
		if !ours {
			add(uint32(w.imported+importRefill), ownPrefix+RefillFunc)
			add(uint32(w.imported+importOverflow), ownPrefix+OverflowFunc)
		}
		ours = true
	}
	for r.Left() > 0 {
		id := r.Byte("a subsection's id")
		size := int(r.U32("a subsection's size"))
		s := &wasmbin.Reader{Data: r.Data, Pos: r.Pos, End: r.Pos + size}
		r.Pos += size
		switch id {
		case wasmbin.NamesModule:
			module = string(text.Prefix(s.Name("the module's name"), maxName))
		case wasmbin.NamesFunctions:
			for range int(s.U32("names")) {
				index, name := s.U32("an index"), s.Name("a name")
				if int64(index) >= int64(len(w.functions)) {
					continue
				}
				if int(index) >= w.imported {
					imports()
				}
				add(w.shift(index), string(text.Prefix(name, maxName)))
			}
		case wasmbin.NamesGlobals: // Parse has not checked these
			for n := s.U32("names"); n > 0 && s.Left() > 0; n-- {
				index, name := s.U32("an index"), s.Name("a name")
				if w.globalNames = w.globalNames || s.Err == nil; s.Err == nil && string(name) == stackPointer {
					w.stackName = int(index) + 1
				}
			}
		}
	}
	imports()
	add(w.ownFunction(ownSlow), ownPrefix+"slow")
	add(w.ownFunction(ownCharge), ownPrefix+"charge")
	if len(w.memories) > 0 {
		add(w.ownFunction(ownGrow), ownPrefix+"memory.grow")
		add(w.ownFunction(ownFill), ownPrefix+"memory.fill")
		add(w.ownFunction(ownCopy), ownPrefix+"memory.copy")
		for i := range w.longOrder {
			add(w.ownFunction(ownInit+i), ownPrefix+"memory.init")
		}
	}
	out := wasmbin.AppendName(nil, wasmbin.NameSection)
	if module != "" {
		content := wasmbin.AppendName(nil, module)
		out = append(wasmbin.AppendU32(append(out, wasmbin.NamesModule), uint32(len(content))), content...)
	}
	count := wasmbin.AppendU32(nil, uint32(n))
	out = wasmbin.AppendU32(append(out, wasmbin.NamesFunctions), uint32(len(count)+len(names)))
	return append(append(out, count...), names...)
}

// ownFunction returns the index of an added function.
func (w *rewriter) ownFunction(number int) uint32 {
	return uint32(len(w.functions) + added + number)
}

// ownFunctions returns the types and the bodies of the added functions.
func (w *rewriter) ownFunctions() (types []uint32, bodies [][]byte) {
	add := func(kind int, body []byte) {
		types = append(types, w.addedType(uint32(kind)))
		bodies = append(bodies, body)
	}
	add(typeNothing, w.slow())
	add(typeTake, w.chargeFunction())
	if len(w.memories) == 0 {
		return types, bodies
	}
	add(typeMap, w.growFunction())
	add(typeThree, w.chunked(opcode.Bulk, byte(opcode.MemoryFill&0xff), 0))
	add(typeThree, w.chunked(opcode.Bulk, byte(opcode.MemoryCopy&0xff), 0, 0))
	for _, segment := range w.longOrder {
		add(typeThree, w.chunked(append(wasmbin.AppendU32([]byte{opcode.Bulk, byte(opcode.MemoryInit & 0xff)}, segment), 0)...))
	}
	return types, bodies
}

func (w *rewriter) ownBody(locals int) *meter {
	m := &meter{w: w}
	if locals == 0 {
		m.op(0)
	} else {
		m.op(1, byte(locals), byte(wasmbin.I32))
	}
	return m
}

// slow asks the host for fuel, or tells it that the call stack is used up.
func (w *rewriter) slow() []byte {
	m := w.ownBody(0)
	m.global(opcode.GlobalGet, globalStack)
	m.constant(0)
	m.op(opcode.I32LtS, opcode.If, opcode.BlockEmpty)
	m.global(opcode.GlobalGet, globalStack)
	m.index(opcode.Call, uint32(w.imported)+importOverflow)
	m.global(opcode.GlobalSet, globalStack)
	m.global(opcode.GlobalGet, globalStack)
	m.constant(0)
	m.op(opcode.I32LtS, opcode.If, opcode.BlockEmpty, opcode.Unreachable, opcode.End, opcode.End)
	m.global(opcode.GlobalGet, globalFuel)
	m.constant(0)
	m.op(opcode.I32LtS, opcode.If, opcode.BlockEmpty)
	m.global(opcode.GlobalGet, globalFuel)
	m.index(opcode.Call, uint32(w.imported)+importRefill)
	m.global(opcode.GlobalSet, globalFuel)
	m.op(opcode.End, opcode.End)
	return m.out
}

// chargeFunction charges a quarter of its operand, but no more than for the longest table or chunk: an instruction with a larger operand traps
// or fails at once.
func (w *rewriter) chargeFunction() []byte {
	const longest = max(maxTable, chunk)
	m := w.ownBody(0)
	m.index(opcode.LocalGet, 0)
	m.constant(longest)
	m.op(opcode.I32GtU, opcode.If, opcode.BlockEmpty)
	m.constant(longest)
	m.index(opcode.LocalSet, 0)
	m.op(opcode.End)
	m.index(opcode.LocalGet, 0)
	m.constant(quarter)
	m.op(opcode.I32ShrU)
	m.take(0)
	m.op(opcode.End)
	return m.out
}

// growFunction grows the memory, and counts the failures.
func (w *rewriter) growFunction() []byte {
	m := w.ownBody(0)
	m.index(opcode.LocalGet, 0)
	m.op(opcode.MemoryGrow, 0)
	m.index(opcode.LocalTee, 0)
	m.constant(-1)
	m.op(opcode.I32Eq, opcode.If, opcode.BlockEmpty)
	m.global(opcode.GlobalGet, globalRefused)
	m.constant(1)
	m.op(opcode.I32Add)
	m.global(opcode.GlobalSet, globalRefused)
	m.op(opcode.End)
	m.index(opcode.LocalGet, 0)
	m.op(opcode.End)
	return m.out
}

// chunked returns the body of a function with the parameters (to, from or value, length). It does what the instruction does, one chunk at a time, and
// charges for it. If the instruction would trap, it writes nothing.
func (w *rewriter) chunked(instruction ...byte) []byte {
	const to, from, length, temp = 0, 1, 2, 3
	kind := opcode.Bulk<<8 | uint16(instruction[1])
	m := w.ownBody(1)
	get := func(locals ...uint32) {
		for _, l := range locals {
			m.index(opcode.LocalGet, l)
		}
	}
	add := func(local uint32, n int) {
		get(local)
		m.constant(n)
		m.op(opcode.I32Add)
		m.index(opcode.LocalSet, local)
	}
	sum := func(local uint32) {
		get(local, length)
		m.op(opcode.I32Add)
	}
	long := func() { // true if more than one chunk is left
		get(length)
		m.constant(chunk)
		m.op(opcode.I32GtU)
	}
	// One chunk: forwards from the beginning, or backwards from the end.
	step := func(forwards bool) {
		m.op(opcode.Loop, opcode.BlockEmpty)
		m.constant(chunk >> quarter)
		m.take(temp)
		add(length, -chunk)
		if forwards {
			get(to, from)
		} else {
			sum(to)
			sum(from)
		}
		m.constant(chunk)
		m.op(instruction...)
		if forwards {
			add(to, chunk)
			if kind != opcode.MemoryFill {
				add(from, chunk)
			}
		}
		long()
		m.op(opcode.BrIf, 0, opcode.End)
	}

	long()
	m.op(opcode.If, opcode.BlockEmpty)
	// If one of the ends wraps around, the whole instruction is executed, and traps. If an end is out of bounds, executing it at the ends with a
	// length of 0 traps.
	sum(to)
	get(to)
	m.op(opcode.I32LtU)
	if kind != opcode.MemoryFill {
		sum(from)
		get(from)
		m.op(opcode.I32LtU, opcode.I32Or)
	}
	m.op(opcode.If, opcode.BlockEmpty)
	get(to, from, length)
	m.op(instruction...)
	m.op(opcode.Unreachable, opcode.End)
	sum(to)
	if kind == opcode.MemoryFill {
		get(from)
	} else {
		sum(from)
	}
	m.constant(0)
	m.op(instruction...)
	if kind == opcode.MemoryCopy {
		get(from, to) // if the source is before the target, the end must be copied first
		m.op(opcode.I32LtU, opcode.If, opcode.BlockEmpty)
		step(false)
		m.op(opcode.Else)
		step(true)
		m.op(opcode.End)
	} else {
		step(true)
	}
	m.op(opcode.End)

	get(length)
	m.constant(quarter)
	m.op(opcode.I32ShrU)
	m.take(temp)
	get(to, from, length)
	m.op(instruction...)
	m.op(opcode.End)
	return m.out
}
