package wasmbin

import "slices"

// The opcodes that something here looks at. Those behind a prefix are prefix<<8 | the number that follows it.
const (
	opUnreachable  = 0x00
	opBlock        = 0x02
	opLoop         = 0x03
	opIf           = 0x04
	opElse         = 0x05
	opEnd          = 0x0b
	opBr           = 0x0c
	opBrIf         = 0x0d
	opBrTable      = 0x0e
	opReturn       = 0x0f
	opCall         = 0x10
	opCallIndirect = 0x11
	opLocalGet     = 0x20
	opLocalSet     = 0x21
	opLocalTee     = 0x22
	opGlobalGet    = 0x23
	opGlobalSet    = 0x24
	opTableGet     = 0x25
	opTableSet     = 0x26
	opMemorySize   = 0x3f
	opMemoryGrow   = 0x40
	opI32Const     = 0x41
	opI32Eqz       = 0x45
	opI32Eq        = 0x46
	opI32LtS       = 0x48
	opI32GeS       = 0x4e
	opI32LtU       = 0x49
	opI32GtU       = 0x4b
	opI32Add       = 0x6a
	opI32Sub       = 0x6b
	opI32Or        = 0x72
	opI32ShrU      = 0x76
	opRefNull      = 0xd0
	opRefFunc      = 0xd2

	opMemoryInit = 0xfc08
	opDataDrop   = 0xfc09
	opMemoryCopy = 0xfc0a
	opMemoryFill = 0xfc0b
	opTableInit  = 0xfc0c
	opElemDrop   = 0xfc0d
	opTableCopy  = 0xfc0e
	opTableGrow  = 0xfc0f
	opTableSize  = 0xfc10
	opTableFill  = 0xfc11
)

// blockEmpty is the type of a block without parameters and results.
const blockEmpty = 0x40

// An instruction is one of a function's body.
type instruction struct {
	op    uint16
	start int    // offset of the opcode
	a, b  uint32 // indices, as the binary format orders them; a is an i32.const's value, or a br_table's number of labels
	block int64  // type of a block, as the binary format has it: an index, or a negative number
	table int    // offset of a br_table's labels, the default last
}

// read reads the instruction at r.pos. It accepts what the compiler does with the features that are turned on, as the
// compiler reads it: an unknown opcode is an error, and so is one that two readers could take for two things.
func (in *instruction) read(r *reader) {
	in.start, in.a, in.b = r.pos, 0, 0
	op := r.byte("an instruction")
	in.op = uint16(op)
	switch {
	case op >= 0x45 && op <= 0xc4: // numbers
	case op == opUnreachable, op == 0x01, op == opElse, op == opEnd, op == opReturn, op == 0x1a, op == 0x1b, op == 0xd1:
	case op == opLocalGet, op == opLocalSet, op == opLocalTee, op == opGlobalGet, op == opGlobalSet, op == opTableGet, op == opTableSet:
		in.a = r.u32("an index")
	case op >= 0x28 && op <= 0x3e: // loads and stores
		in.memory(r)
	case op == opI32Const:
		in.a = r.s32()
	case op == 0x42:
		r.skipSigned(64, "an i64 constant")
	case op == 0x43:
		r.bytes(4, "an f32 constant")
	case op == 0x44:
		r.bytes(8, "an f64 constant")
	case op == opCall, op == opRefFunc:
		in.a = r.u32("a function's index")
	case op == opCallIndirect:
		in.a = r.u32("a type's index")
		in.b = r.u32("a table's index")
	case op == opBlock, op == opLoop, op == opIf:
		in.block = r.blockType()
	case op == opBr, op == opBrIf:
		in.a = r.u32("a label")
	case op == opBrTable:
		in.a = uint32(r.count(maxBody, "labels"))
		in.table = r.pos
		for range in.a {
			r.u32("a label")
			if r.err != nil {
				return
			}
		}
		r.u32("a label")
	case op == 0x1c: // select with a type
		if n := r.u32("the number of types"); n != 1 {
			r.fail(in.start, "select has %d types: it must have one", n)
		}
		r.valueType("select")
	case op == opMemorySize, op == opMemoryGrow:
		r.zero()
	case op == opRefNull:
		r.refType()
	case op == 0xfc:
		in.bulk(r)
	case op == 0xfd:
		in.vector(r)
	default:
		r.fail(in.start, "instruction %#x is %w", op, ErrUnsupported)
	}
}

// memory reads what follows a load or a store.
func (in *instruction) memory(r *reader) {
	if align := r.u32("an alignment"); align > 4 {
		r.fail(in.start, "an alignment of 2**%d is %w", align, ErrUnsupported)
	}
	r.u32("an offset")
}

// bulk reads what follows the prefix 0xfc.
func (in *instruction) bulk(r *reader) {
	sub := r.byte("an instruction")
	in.op = 0xfc00 | uint16(sub)
	switch {
	case sub < 8: // conversions
	case in.op == opMemoryInit:
		in.a = r.u32("a data segment's index")
		r.zero()
	case in.op == opDataDrop:
		in.a = r.u32("a data segment's index")
	case in.op == opMemoryCopy:
		r.zero()
		r.zero()
	case in.op == opMemoryFill:
		r.zero()
	case in.op == opTableInit, in.op == opTableCopy:
		in.a = r.u32("an index")
		in.b = r.u32("an index")
	case in.op == opElemDrop:
		in.a = r.u32("an element segment's index")
	case in.op == opTableGrow, in.op == opTableSize, in.op == opTableFill:
		in.a = r.u32("a table's index")
	default:
		r.fail(in.start, "instruction 0xfc %#x is %w", sub, ErrUnsupported)
	}
}

// vector reads what follows the prefix 0xfd. The number of the instruction is LEB128, but the compiler reads one byte
// of it, and takes what follows a number from 128 on for a nop: so it must be written in the fewest bytes.
func (in *instruction) vector(r *reader) {
	sub := r.byte("an instruction")
	if sub >= 0x80 {
		if next := r.byte("an instruction"); next != 1 {
			r.fail(in.start, "instruction 0xfd %#x %#x is %w", sub, next, ErrUnsupported)
		}
	}
	in.op = 0xfd00 | uint16(sub)
	switch {
	case sub <= 11, sub == 92, sub == 93: // loads and stores
		in.memory(r)
	case sub == 12, sub == 13: // a constant, a shuffle
		r.bytes(16, "lanes")
	case sub >= 21 && sub <= 34: // lanes
		r.byte("a lane")
	case sub >= 84 && sub <= 91: // loads and stores of lanes
		in.memory(r)
		r.byte("a lane")
	}
}

// blockType reads a block's type: an index, or a negative number that stands for a value type or nothing.
func (r *reader) blockType() int64 {
	start := r.pos
	if r.left() > 0 && r.data[r.pos]&0xc0 == 0x40 { // one byte, negative
		switch t := ValueType(r.byte("a block's type")); t {
		case blockEmpty, I32, I64, F32, F64, V128, FuncRef, ExternRef:
			return int64(t) - 0x80
		}
		r.fail(start, "a block of type %#x is %w", r.data[start], ErrUnsupported)
		return 0
	}
	index := r.u32("a block's type")
	if n := r.pos - start; r.err == nil && n > 1 && n < 5 && r.data[r.pos-1]&0x40 != 0 {
		r.fail(start, "a block's type is a negative number of %d bytes", n)
	}
	return int64(index)
}

// s32 reads a signed number of 32 bits.
func (r *reader) s32() uint32 {
	start := r.pos
	value := uint32(0)
	for shift := 0; shift < 35; shift += 7 {
		b := r.byte("an i32 constant")
		value |= uint32(b&0x7f) << shift
		if b < 0x80 {
			if shift < 28 && b&0x40 != 0 {
				value |= ^uint32(0) << (shift + 7)
			}
			return value
		}
	}
	r.fail(start, "an i32 constant is longer than its largest value")
	return 0
}

// zero reads the byte that stands for the only memory.
func (r *reader) zero() {
	if b := r.byte("a memory's index"); b != 0 {
		r.fail(r.pos-1, "memory %d is %w: one memory is", b, ErrUnsupported)
	}
}

// weight is what the instruction costs in units of fuel: about the time that it takes at most, in instructions of the
// common kind. What depends on an operand is charged at run time.
func (in *instruction) weight() int {
	switch op := in.op; {
	case op == 0x01, op == opBlock, op == opLoop, op == opElse, op == opEnd, op == 0x1a, op == opLocalGet, op == opI32Const:
		return 0 // no machine code, or part of what uses it
	case op >= 0x28 && op <= 0x3e: // loads and stores
		return 4
	case op >= 0x6d && op <= 0x70, op >= 0x7f && op <= 0x82: // integer division
		return 8
	case op == 0x91, op == 0x95, op == 0x9f, op == 0xa3: // square roots, float division
		return 6
	case op == opCall, op == opBrTable:
		return 4
	case op == opCallIndirect:
		return 8
	case op == opMemoryGrow: // calls the host, and the host the operating system
		return 500
	case op == opTableGrow:
		return 500
	case op >= opMemoryInit && op <= opTableFill:
		return 32
	case op>>8 == 0xfd:
		return 4
	}
	return 1
}

// The features beyond WebAssembly 1.0 that Features looks for, by the names that LLVM gives them as target features.
const (
	featureBulkMemory = "bulk-memory"
	featureMultiValue = "multivalue"
	featureFPToInt    = "nontrapping-fptoint"
	featureReferences = "reference-types"
	featureSignExt    = "sign-ext"
	featureSIMD       = "simd128"
)

// Features returns which features beyond WebAssembly 1.0 the types and the code of the module use, sorted. An instruction
// that is not known is an error.
func (m *Module) Features() ([]string, error) {
	used := map[string]bool{featureBulkMemory: m.announced >= 0, featureReferences: len(m.tables) > 1}
	for _, t := range m.types {
		m.note(used, t.Params...)
		m.note(used, t.Results...)
		if len(t.Results) > 1 {
			used[featureMultiValue] = true
		}
	}
	r := &reader{data: m.data, pos: len(header), end: len(m.data)}
	for r.left() > 0 {
		if s := r.next(); s.id == sectionCode {
			m.codeFeatures(s.within(r.data), r, used)
		}
	}
	if r.err != nil {
		return nil, r.err
	}
	var list []string
	for name, is := range used {
		if is {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list, nil
}

// note notes the features that value types need.
func (m *Module) note(used map[string]bool, types ...ValueType) {
	for _, t := range types {
		switch t {
		case V128:
			used[featureSIMD] = true
		case FuncRef, ExternRef:
			used[featureReferences] = true
		}
	}
}

// codeFeatures notes the features that the code section uses. An error goes to whole.
func (m *Module) codeFeatures(r, whole *reader, used map[string]bool) {
	var in instruction
	section := r.end
	for range r.count(maxFunctions, "bodies") {
		size := int(r.u32("a body's size"))
		r.end = r.pos + min(size, r.left())
		for range r.count(maxLocals, "runs of locals") {
			r.u32("a number of locals")
			m.note(used, r.valueType("locals"))
		}
		for r.left() > 0 {
			in.read(r)
			if name := m.featureOf(&in); name != "" {
				used[name] = true
			}
		}
		if r.err != nil {
			whole.err = r.err
			return
		}
		r.end = section
	}
}

// featureOf returns the feature that an instruction belongs to, or "".
func (m *Module) featureOf(in *instruction) string {
	switch op := in.op; {
	case op >= 0xc0 && op <= 0xc4:
		return featureSignExt
	case op == opTableGet, op == opTableSet, op == opRefNull, op == opRefFunc, op == 0xd1, op == 0x1c,
		op == opTableGrow, op == opTableSize, op == opTableFill, op == opCallIndirect && in.b > 0:
		return featureReferences
	case op>>8 == 0xfc && op&0xff < 8:
		return featureFPToInt
	case op >= opMemoryInit && op <= opTableCopy:
		return featureBulkMemory
	case op>>8 == 0xfd:
		return featureSIMD
	case op == opBlock, op == opLoop, op == opIf:
		if in.block >= 0 && in.block < int64(len(m.types)) && (len(m.types[in.block].Params) > 0 || len(m.types[in.block].Results) > 1) {
			return featureMultiValue
		}
	}
	return ""
}
