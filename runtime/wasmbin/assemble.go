package wasmbin

import (
	"fmt"
	"strconv"
	"unicode/utf8"
)

func (w *rewriter) writeTypes(r *reader) []byte {
	n := 0
	if r.data != nil {
		n = r.count(maxTypes, "types")
	}
	out := appendU32(nil, uint32(n+addedTypes+len(w.blockAt)))
	out = append(out, r.data[r.pos:r.end]...)
	i := byte(I32)
	out = append(out, 0x60, 0, 0, 0x60, 1, i, 1, i, 0x60, 1, i, 0, 0x60, 3, i, i, i, 0)
	return append(out, w.blocks...)
}

// blockOf returns the type of a block with these results, for which it may add a function type.
func (w *rewriter) blockOf(results []ValueType) []byte {
	switch len(results) {
	case 0:
		return []byte{blockEmpty}
	case 1:
		return []byte{byte(results[0])}
	}
	key := make([]byte, len(results))
	for i, t := range results {
		key[i] = byte(t)
	}
	at, ok := w.blockAt[string(key)]
	if !ok {
		at = int(w.types) + addedTypes + len(w.blockAt)
		w.blockAt[string(key)] = at
		w.blocks = append(appendU32(append(w.blocks, 0x60, 0), uint32(len(key))), key...)
	}
	return appendS64(nil, int64(at))
}

// writeImports adds ours behind the guest's, so that the indices of imported functions stay.
func (w *rewriter) writeImports(r *reader) []byte {
	n := 0
	if r.data != nil {
		n = r.count(maxImports, "imports")
	}
	out := appendU32(nil, uint32(n+added))
	out = append(out, r.data[r.pos:r.end]...)
	for _, f := range [...]struct {
		name string
		kind uint32
	}{importRefill: {RefillFunc, typeMap}, importOverflow: {OverflowFunc, typeMap}} {
		out = appendName(appendName(out, MeterModule), f.name)
		out = appendU32(append(out, byte(KindFunction)), w.types+f.kind)
	}
	return out
}

func (w *rewriter) writeFunctions(*reader) []byte {
	types, _ := w.ownFunctions()
	own := w.m.functions[w.m.imported:]
	out := appendU32(nil, uint32(len(own)+len(types)))
	for _, t := range own {
		out = appendU32(out, t)
	}
	for _, t := range types {
		out = appendU32(out, t)
	}
	return out
}

// writeTables gives each table a maximum.
func (w *rewriter) writeTables(r *reader) []byte {
	if r.data == nil {
		return nil
	}
	n := r.count(maxTables, "tables")
	out := appendU32(nil, uint32(n))
	for range n {
		start := r.pos
		if r.data[r.pos] == 0x40 {
			r.fail(start, "a table with an initial value is %w: fill it by an element segment", ErrUnsupported)
			return nil
		}
		t := r.table()
		most := uint64(maxTable)
		if t.HasMax {
			most = min(most, t.Max)
		}
		out = append(out, r.data[start], 1)
		out = appendU32(appendU32(out, uint32(t.Min)), uint32(most))
	}
	return out
}

// writeGlobals writes the globals, without their number: closeGlobals adds to them.
func (w *rewriter) writeGlobals(r *reader) []byte {
	w.declared = make([]bool, len(w.m.functions))
	w.taken = make([]bool, len(w.m.functions))
	n := 0
	if r.data != nil {
		n = r.count(maxGlobals, "globals")
	}
	var out []byte
	w.own = n
	imported := w.m.globals - n
	for i := range n {
		kind := r.valueType("a global")
		mutable := r.byte("a global's mutability")
		out = append(out, byte(kind), mutable)
		if ahead := *r; kind == I32 && mutable == 1 && ahead.byte("a constant expression") == opI32Const {
			if first := ahead.s32(); first > 0 && first%16 == 0 && ahead.byte("a constant expression") == opEnd {
				w.pointers = append(w.pointers, pointer{imported + i, len(w.out.Globals), first})
			}
		}
		out = w.copyConstant(r, out)
		if mutable == 0 {
			continue
		}
		w.mutable++
		switch kind {
		case I32, I64, F32, F64:
			w.out.Globals = append(w.out.Globals, Global{globalExport + strconv.Itoa(imported+i), kind})
		default:
			if w.out.Fresh == "" {
				w.out.Fresh = fmt.Sprintf("global %d is a mutable %s", imported+i, kind)
			}
		}
	}
	for range addedGlobals {
		out = append(out, byte(I32), 1, opI32Const, 0, opEnd)
	}
	return out
}

// closeGlobals adds a constant for each function that ref.func names. wazero makes a new object of each ref.func that is
// executed and keeps it as long as the instance: 48 bytes of the host's, in a loop, without a limit.
func (w *rewriter) closeGlobals(written []byte) []byte {
	out := append(appendU32(nil, uint32(w.own+addedGlobals+len(w.refOrder))), written...)
	for _, index := range w.refOrder {
		out = appendU32(append(out, byte(FuncRef), 0, opRefFunc), w.shift(index))
		out = append(out, opEnd)
	}
	return out
}

// copyConstant copies a constant expression, in which the indices of functions move along. Those functions are
// declared, and may be in a table from then on.
func (w *rewriter) copyConstant(r *reader, out []byte) []byte {
	start, begin := r.pos, len(out)
	r.constant()
	if r.err != nil {
		return nil
	}
	c := &reader{data: r.data, pos: start, end: r.pos, section: r.section}
	for c.left() > 0 {
		at := c.pos
		switch op := c.byte("a constant expression"); op {
		case opRefFunc:
			index := c.u32("a function's index")
			w.declare(c, at, index)
			out = appendU32(append(out, op), w.shift(index))
			continue
		case opGlobalGet:
			if index := c.u32("a global's index"); int64(index) >= int64(w.m.globals) {
				c.fail(at, "global %d is not declared: there are %d", index, w.m.globals)
			}
		case opI32Const:
			c.skipSigned(32, "an i32 constant")
		case 0x42:
			c.skipSigned(64, "an i64 constant")
		case 0x43:
			c.bytes(4, "an f32 constant")
		case 0x44:
			c.bytes(8, "an f64 constant")
		case opRefNull:
			c.refType()
		case 0xfd:
			c.bytes(17, "a v128 constant")
		case opEnd:
		default:
			c.fail(at, "instruction %#x in a constant expression is %w", op, ErrUnsupported)
		}
		out = append(out, c.data[at:c.pos]...)
	}
	if r.err = c.err; r.err == nil && len(out)-begin < 2 {
		r.fail(start, "a constant expression is empty")
	}
	return out
}

// declare takes in that a function may be in a table, and may be named by ref.func.
func (w *rewriter) declare(r *reader, at int, index uint32) {
	if int64(index) >= int64(len(w.m.functions)) {
		r.fail(at, "function %d is not declared: there are %d", index, len(w.m.functions))
		return
	}
	w.declared[index], w.taken[index] = true, true
}

// writeExports adds ours. Parse has checked the indices.
func (w *rewriter) writeExports(r *reader) []byte {
	n := 0
	if r.data != nil {
		n = r.count(maxExports, "exports")
	}
	out := make([]byte, 0, r.end-r.pos+64*(len(w.out.Globals)+addedGlobals))
	for range n {
		name := r.name("an export's name")
		kind := r.byte("an export's kind")
		index := r.u32("an export's index")
		switch {
		case Kind(kind) == KindFunction:
			w.declared[index] = true
			index = w.shift(index)
		case Kind(kind) == KindGlobal && string(name) == stackPointer:
			w.stackExport = int(index) + 1
		}
		out = appendU32(append(appendName(out, string(name)), kind), index)
	}
	global := func(name string, index int) {
		out = appendU32(append(appendName(out, name), byte(KindGlobal)), uint32(index))
		n++
	}
	for _, g := range w.out.Globals {
		index, _ := strconv.Atoi(g.Name[len(globalExport):])
		global(g.Name, index)
	}
	global(FuelGlobal, w.m.globals+globalFuel)
	global(StackGlobal, w.m.globals+globalStack)
	global(RefusedGlobal, w.m.globals+globalRefused)
	if s := w.sections[sectionStart]; s.content > 0 {
		start := s.within(w.data)
		w.out.Start = startExport
		out = appendU32(append(appendName(out, startExport), byte(KindFunction)), w.shift(start.u32("the start function's index")))
		n++
	}
	return append(appendU32(nil, uint32(n)), out...)
}

func (w *rewriter) writeElements(r *reader) []byte {
	if r.data == nil {
		return nil
	}
	w.elements = r.count(maxElements, "element segments")
	out := appendU32(make([]byte, 0, r.left()+r.left()/4), uint32(w.elements))
	for range w.elements {
		start := r.pos
		form := r.u32("an element segment's form")
		out = appendU32(out, form)
		if form&elementPassive == 0 {
			table := uint32(0)
			if form&elementExplicit != 0 {
				table = r.u32("a table's index")
				out = appendU32(out, table)
			}
			if int64(table) >= int64(len(w.m.tables)) {
				r.fail(start, "table %d is not declared: there are %d", table, len(w.m.tables))
				return nil
			}
			out = w.copyConstant(r, out)
		}
		if form&(elementPassive|elementExplicit) != 0 {
			out = append(out, r.byte("a type"))
		}
		n := r.count(maxElements, "elements")
		out = appendU32(out, uint32(n))
		if w.out.Elements += n; w.out.Elements+w.elements > maxInit {
			r.fail(start, "the module has %d elements and element segments at least, the limit is %d: every instance pays for each", w.out.Elements+w.elements, maxInit)
			return nil
		}
		for range n {
			if form&elementExpressions != 0 {
				out = w.copyConstant(r, out)
			} else {
				at := r.pos
				index := r.u32("a function's index")
				w.declare(r, at, index)
				out = appendU32(out, w.shift(index))
			}
			if r.err != nil {
				return nil
			}
		}
	}
	return out
}

// writeData takes what is active out of the data section. An empty segment stays in its place, as after an active
// one has been written to the memory.
func (w *rewriter) writeData(r *reader) []byte {
	if r.data == nil {
		return nil
	}
	n := r.count(maxDataSegments, "data segments")
	out := appendU32(nil, uint32(n))
	for i := range n {
		start := r.pos
		form := r.u32("a data segment's form")
		if form == 2 {
			if memory := r.u32("a memory's index"); memory != 0 {
				r.fail(start, "memory %d is not declared", memory)
			}
		}
		offset := uint32(0)
		if form != 1 {
			if op := r.byte("an offset"); op != opI32Const {
				r.fail(start, "data segment %d has an offset that is %w: it must be an i32.const", i, ErrUnsupported)
			}
			offset = r.s32()
			if op := r.byte("an offset"); op != opEnd {
				r.fail(start, "data segment %d has an offset that is %w: it must be one i32.const", i, ErrUnsupported)
			}
			if len(w.m.memories) == 0 {
				r.fail(start, "data segment %d is active, but there is no memory", i)
			}
		}
		content := r.bytes(int(r.u32("a data segment's size")), "a data segment")
		if r.err != nil {
			return nil
		}
		if form != 1 {
			w.out.Data = append(w.out.Data, DataSegment{offset, content})
			content = nil
		}
		w.segments = append(w.segments, len(content))
		out = appendU32(append(out, 1), uint32(len(content)))
		out = append(out, content...)
	}
	return out
}

// writeCode reads all bodies, and then writes them.
func (w *rewriter) writeCode(r *reader) []byte {
	n := 0
	if r.data != nil {
		n = r.count(maxFunctions, "bodies")
	}
	size := r.left()
	w.bodies = make([]function, n)
	w.flat = make([]uint8, n)
	w.seen = make([]int, len(w.m.functions)+len(w.m.types))
	for i := range w.bodies {
		f := &w.bodies[i]
		length := int(r.u32("a body's size"))
		f.start, f.end = r.pos, r.pos+length
		t := w.m.types[w.m.functions[w.m.imported+i]]
		f.results, f.locals = t.Results, len(t.Params)
		b := w.body(i)
		for range b.count(maxLocals, "runs of locals") {
			f.locals += int(b.u32("a number of locals"))
			b.valueType("locals")
		}
		f.code = b.pos
		w.flat[i] = uint8(measureFlat(b, f.locals))
		r.pos = f.end
	}
	for i := range w.bodies {
		w.current = i
		b := w.body(i)
		b.pos = w.bodies[i].code
		if w.analyse(b, &w.bodies[i]); b.err != nil {
			r.err = b.err
			return nil
		}
	}
	w.chargeStack()
	types, own := w.ownFunctions()
	out := appendU32(make([]byte, 0, size+size/2), uint32(n+len(own)))
	m := &meter{w: w}
	scale := w.scale(types)
	for i := range w.bodies {
		w.current = i
		f := &w.bodies[i]
		m.f, m.r = f, w.body(i)
		if w.flat[i] > 0 && f.stack == 0 {
			out = appendU32(out, uint32(f.end-f.start))
			out = append(out, w.data[f.start:f.end]...)
			if w.weigh(scale, m.r, f, out[len(out)-(f.end-f.start):]); m.r.err != nil {
				r.err = m.r.err
				return nil
			}
			continue
		}
		out = m.write(out)
		if w.weigh(scale, m.r, f, m.out); m.r.err != nil {
			r.err = m.r.err
			return nil
		}
	}
	w.total(r, len(out))
	for _, body := range own {
		out = append(appendU32(out, uint32(len(body))), body...)
	}
	return out
}

// body returns a reader of a function's body.
func (w *rewriter) body(i int) *reader {
	return &reader{data: w.data, pos: w.bodies[i].start, end: w.bodies[i].end, section: "function " + strconv.Itoa(w.m.imported+i) + ", code"}
}

// maxName is the longest name, in bytes, that is kept: a trap's error has the names of 30 functions.
const maxName = 128

// writeNames returns the content of a name section with the names of functions and ours; those of locals show up nowhere.
func (w *rewriter) writeNames() []byte {
	module := ""
	var names []byte
	n, ours := 0, false
	add := func(index uint32, name string) {
		names = appendName(appendU32(names, index), name)
		n++
	}
	imports := func() {
		if !ours {
			add(uint32(w.m.imported+importRefill), ownPrefix+RefillFunc)
			add(uint32(w.m.imported+importOverflow), ownPrefix+OverflowFunc)
		}
		ours = true
	}
	if w.names.content > 0 {
		r := w.names.within(w.data)
		for r.left() > 0 {
			id := r.byte("a subsection's id")
			size := int(r.u32("a subsection's size"))
			s := &reader{data: r.data, pos: r.pos, end: r.pos + size}
			r.pos += size
			switch id {
			case namesModule:
				module = shorten(s.name("the module's name"))
			case namesFunctions:
				for range s.count(maxFunctions, "names") {
					index, name := s.u32("an index"), s.name("a name")
					if int64(index) >= int64(len(w.m.functions)) {
						continue
					}
					if int(index) >= w.m.imported {
						imports()
					}
					add(w.shift(index), shorten(name))
				}
			case namesGlobals:
				for range s.count(maxGlobals, "names") {
					index, name := s.u32("an index"), s.name("a name")
					if w.globalNames = w.globalNames || s.err == nil; s.err == nil && string(name) == stackPointer {
						w.stackName = int(index) + 1
					}
				}
			}
		}
	}
	imports()
	add(w.ownFunction(ownSlow), ownPrefix+"slow")
	add(w.ownFunction(ownCharge), ownPrefix+"charge")
	if len(w.m.memories) > 0 {
		add(w.ownFunction(ownGrow), ownPrefix+"memory.grow")
		add(w.ownFunction(ownFill), ownPrefix+"memory.fill")
		add(w.ownFunction(ownCopy), ownPrefix+"memory.copy")
		for i := range w.longOrder {
			add(w.ownFunction(ownInit+i), ownPrefix+"memory.init")
		}
	}
	out := appendName(nil, nameSection)
	if module != "" {
		content := appendName(nil, module)
		out = append(appendU32(append(out, namesModule), uint32(len(content))), content...)
	}
	count := appendU32(nil, uint32(n))
	out = appendU32(append(out, namesFunctions), uint32(len(count)+len(names)))
	return append(append(out, count...), names...)
}

// shorten cuts a name to maxName bytes.
func shorten(name []byte) string {
	if len(name) <= maxName {
		return string(name)
	}
	cut := maxName
	for !utf8.RuneStart(name[cut]) {
		cut--
	}
	return string(name[:cut])
}
