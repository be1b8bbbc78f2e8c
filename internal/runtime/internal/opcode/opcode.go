// Package opcode names the instructions of WebAssembly that this project treats specially.
package opcode

// The instructions of one byte.
const (
	Unreachable  = 0x00
	Nop          = 0x01
	Block        = 0x02
	Loop         = 0x03
	If           = 0x04
	Else         = 0x05
	End          = 0x0b
	Br           = 0x0c
	BrIf         = 0x0d
	BrTable      = 0x0e
	Return       = 0x0f
	Call         = 0x10
	CallIndirect = 0x11
	Drop         = 0x1a
	Select       = 0x1b
	SelectTyped  = 0x1c
	LocalGet     = 0x20
	LocalSet     = 0x21
	LocalTee     = 0x22
	GlobalGet    = 0x23
	GlobalSet    = 0x24
	TableGet     = 0x25
	TableSet     = 0x26
	Load         = 0x28 // the first load
	Store        = 0x36 // the first store; the stores end before MemorySize
	MemorySize   = 0x3f
	MemoryGrow   = 0x40
	I32Const     = 0x41
	I64Const     = 0x42
	F32Const     = 0x43
	F64Const     = 0x44
	I32Eqz       = 0x45
	I32Eq        = 0x46
	I32LtS       = 0x48
	I32LtU       = 0x49
	I32GtU       = 0x4b
	I32GeS       = 0x4e
	I32Add       = 0x6a
	I32Sub       = 0x6b
	I32Mul       = 0x6c
	I32Or        = 0x72
	I32ShrU      = 0x76
	I64Add       = 0x7c
	I64Sub       = 0x7d
	I64Mul       = 0x7e
	I32Extend8S  = 0xc0 // the first sign extension
	I64Extend32S = 0xc4 // the last sign extension, and the last instruction on numbers
	RefNull      = 0xd0
	RefIsNull    = 0xd1
	RefFunc      = 0xd2
)

// An instruction with a prefix is prefix<<8 | the number that follows the prefix.
const (
	Bulk   = 0xfc // the prefix of conversions that don't trap, and of instructions on memories and tables
	Vector = 0xfd // the prefix of instructions on vectors

	MemoryInit = Bulk<<8 | 8
	DataDrop   = Bulk<<8 | 9
	MemoryCopy = Bulk<<8 | 10
	MemoryFill = Bulk<<8 | 11
	TableInit  = Bulk<<8 | 12
	ElemDrop   = Bulk<<8 | 13
	TableCopy  = Bulk<<8 | 14
	TableGrow  = Bulk<<8 | 15
	TableSize  = Bulk<<8 | 16
	TableFill  = Bulk<<8 | 17

	VectorConst = Vector<<8 | 12
)

// BlockEmpty is the type of a block without parameters and results.
const BlockEmpty = 0x40
