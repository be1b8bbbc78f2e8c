package wasmbin

import "github.com/toolsrv/toolsrv/internal/runtime/internal/opcode"

// An Instruction is one instruction of a function's body or of a constant expression.
type Instruction struct {
	Op    uint16
	Start int    // offset of the opcode
	A, B  uint32 // indices in the order of the binary format; A is also the value of i32.const, and the number of br_table's labels
	Block int64  // type of a block, as in the binary format: an index, or a negative number
	Table int    // offset of a br_table's labels; the last one is the default
}

// EmptyBlock is Instruction.Block of a block without parameters and results.
const EmptyBlock = opcode.BlockEmpty - 0x80

// Read reads the instruction at r.Pos. It accepts what the compiler accepts with the features that are turned on. An unknown opcode is an error, as
// is an encoding that two decoders could read differently.
func (in *Instruction) Read(r *Reader) {
	in.Start, in.A, in.B = r.Pos, 0, 0
	op := r.Byte("an instruction")
	in.Op = uint16(op)
	switch {
	case op >= opcode.LocalGet && op <= opcode.TableSet: // first, since these are half of all instructions
		in.A = r.U32("an index")
	case op >= opcode.I32Eqz && op <= opcode.I64Extend32S: // numbers
	case op == opcode.Unreachable, op == opcode.Nop, op == opcode.Else, op == opcode.End, op == opcode.Return, op == opcode.Drop, op == opcode.Select, op == opcode.RefIsNull:
	case op >= opcode.Load && op < opcode.MemorySize:
		in.memory(r)
	case op == opcode.I32Const:
		in.A = r.s32()
	case op == opcode.I64Const:
		r.skipSigned(64, "an i64 constant")
	case op == opcode.F32Const:
		r.Bytes(4, "an f32 constant")
	case op == opcode.F64Const:
		r.Bytes(8, "an f64 constant")
	case op == opcode.Call, op == opcode.RefFunc:
		in.A = r.U32("a function's index")
	case op == opcode.CallIndirect:
		in.A = r.U32("a type's index")
		in.B = r.U32("a table's index")
	case op == opcode.Block, op == opcode.Loop, op == opcode.If:
		in.Block = r.blockType()
	case op == opcode.Br, op == opcode.BrIf:
		in.A = r.U32("a label")
	case op == opcode.BrTable:
		in.A = uint32(r.count(maxBody, "labels"))
		in.Table = r.Pos
		for range in.A {
			r.U32("a label")
			if r.Err != nil {
				return
			}
		}
		r.U32("a label")
	case op == opcode.SelectTyped:
		if n := r.U32("the number of types"); n != 1 {
			r.Fail(in.Start, "select has %d types: it must have one", n)
		}
		r.ValueType("select")
	case op == opcode.MemorySize, op == opcode.MemoryGrow:
		r.zero()
	case op == opcode.RefNull:
		r.refType()
	case op == opcode.Bulk:
		in.bulk(r)
	case op == opcode.Vector:
		in.vector(r)
	default:
		r.Fail(in.Start, "instruction %#x is %w", op, ErrUnsupported)
	}
}

// ReadConstant reads the next instruction of a constant expression; the last one is opcode.End. It accepts constants, the values of globals,
// references, and the instructions of the proposal for extended constants.
func (in *Instruction) ReadConstant(r *Reader) {
	if r.Left() == 0 {
		r.Fail(r.Pos, "a constant expression is cut off")
		return
	}
	switch op := r.Data[r.Pos]; op {
	case opcode.End, opcode.I32Const, opcode.I64Const, opcode.F32Const, opcode.F64Const, opcode.GlobalGet, opcode.RefNull, opcode.RefFunc,
		opcode.I32Add, opcode.I32Sub, opcode.I32Mul, opcode.I64Add, opcode.I64Sub, opcode.I64Mul:
		in.Read(r)
	case opcode.Vector:
		if in.Read(r); in.Op != opcode.VectorConst {
			r.Fail(in.Start, "instruction 0xfd %#x is %w in a constant expression", in.Op&0xff, ErrUnsupported)
		}
	default:
		r.Fail(r.Pos, "instruction %#x is %w in a constant expression", op, ErrUnsupported)
	}
}

// constant skips a constant expression.
func (r *Reader) constant() {
	var in Instruction
	for in.ReadConstant(r); r.Err == nil && in.Op != opcode.End; in.ReadConstant(r) {
	}
}

// I32Constant skips a constant expression, and returns its value if it is a single i32.const.
func (r *Reader) I32Constant() (value uint32, ok bool) {
	start := r.Pos
	var in Instruction
	if in.ReadConstant(r); in.Op == opcode.I32Const {
		value = in.A
		if in.ReadConstant(r); in.Op == opcode.End {
			return value, r.Err == nil
		}
	}
	r.Pos = start
	r.constant()
	return 0, false
}

// Labels returns a reader of the labels of a br_table: A labels, and the default. data is what the instruction was read from.
func (in *Instruction) Labels(data []byte) Reader {
	return Reader{Data: data, Pos: in.Table, End: len(data)}
}

// memory reads the operands of a load or a store.
func (in *Instruction) memory(r *Reader) {
	if align := r.U32("an alignment"); align > 4 {
		r.Fail(in.Start, "an alignment of 2**%d is %w", align, ErrUnsupported)
	}
	r.U32("an offset")
}

// bulk reads what follows the prefix 0xfc.
func (in *Instruction) bulk(r *Reader) {
	sub := r.Byte("an instruction")
	in.Op = opcode.Bulk<<8 | uint16(sub)
	switch {
	case sub < 8: // conversions
	case in.Op == opcode.MemoryInit:
		in.A = r.U32("a data segment's index")
		r.zero()
	case in.Op == opcode.DataDrop:
		in.A = r.U32("a data segment's index")
	case in.Op == opcode.MemoryCopy:
		r.zero()
		r.zero()
	case in.Op == opcode.MemoryFill:
		r.zero()
	case in.Op == opcode.TableInit, in.Op == opcode.TableCopy:
		in.A = r.U32("an index")
		in.B = r.U32("an index")
	case in.Op == opcode.ElemDrop:
		in.A = r.U32("an element segment's index")
	case in.Op == opcode.TableGrow, in.Op == opcode.TableSize, in.Op == opcode.TableFill:
		in.A = r.U32("a table's index")
	default:
		r.Fail(in.Start, "instruction 0xfc %#x is %w", sub, ErrUnsupported)
	}
}

// vector reads what follows the prefix 0xfd. The number of the instruction is LEB128, but the compiler reads only its first byte; from 128 on, it
// takes the second byte for a nop. So the number must be written in the fewest bytes.
func (in *Instruction) vector(r *Reader) {
	sub := r.Byte("an instruction")
	if sub >= 0x80 {
		if next := r.Byte("an instruction"); next != 1 {
			r.Fail(in.Start, "instruction 0xfd %#x %#x is %w", sub, next, ErrUnsupported)
		}
	}
	in.Op = opcode.Vector<<8 | uint16(sub)
	switch {
	case sub <= 11, sub == 92, sub == 93: // loads and stores
		in.memory(r)
	case sub == 12, sub == 13: // a constant, a shuffle
		r.Bytes(16, "lanes")
	case sub >= 21 && sub <= 34: // lanes
		r.Byte("a lane")
	case sub >= 84 && sub <= 91: // loads and stores of lanes
		in.memory(r)
		r.Byte("a lane")
	}
}

// blockType reads a block's type: an index, or a negative number that means a value type or nothing.
func (r *Reader) blockType() int64 {
	start := r.Pos
	if r.Left() > 0 && r.Data[r.Pos]&0xc0 == 0x40 { // one byte, negative
		switch t := ValueType(r.Byte("a block's type")); t {
		case opcode.BlockEmpty, I32, I64, F32, F64, V128, FuncRef, ExternRef:
			return int64(t) - 0x80
		}
		r.Fail(start, "a block of type %#x is %w", r.Data[start], ErrUnsupported)
		return 0
	}
	index := r.U32("a block's type")
	if n := r.Pos - start; r.Err == nil && n > 1 && n < 5 && r.Data[r.Pos-1]&0x40 != 0 {
		r.Fail(start, "a block's type is a negative number of %d bytes", n)
	}
	return int64(index)
}

// zero reads the index of the only memory, one byte.
func (r *Reader) zero() {
	if b := r.Byte("a memory's index"); b != 0 {
		r.Fail(r.Pos-1, "memory %d is %w: a module has one, memory 0", b, ErrUnsupported)
	}
}
