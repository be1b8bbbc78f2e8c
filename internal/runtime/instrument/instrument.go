// Package instrument rewrites WebAssembly modules so that they can be metered, stopped and reset.
//
// [Rewrite] reads the bodies of functions, which wasmbin.Parse does not look into. The module that it makes charges for fuel
// and call stack, exports its mutable globals, and leaves it to the host to write its data. Package weigh predicts what
// compiling it takes.
package instrument

import (
	"fmt"
	"strings"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/instrument/internal/weigh"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
	"github.com/toolsrv/toolsrv/internal/text"
)

// RewriterVersion is raised whenever Rewrite rewrites a module differently or refuses other modules. It must be part of the key under which anything
// about rewritten modules is stored, since stored modules are neither rewritten nor checked again.
const RewriterVersion = 16

// The names that Rewrite adds to a module.
const (
	// FuelGlobal is exported: a mutable i32 with the units of fuel that are left in the slice. The host sets it before
	// a call.
	FuelGlobal = "toolsrv.fuel"
	// StackGlobal is exported: a mutable i32 with the bytes of call stack that are left. The host sets it before a call.
	StackGlobal = "toolsrv.stack"
	// RefusedGlobal is exported: a mutable i32 that counts how often memory.grow failed. The host may set it.
	RefusedGlobal = "toolsrv.refused"
	// MeterModule is the module of the imports RefillFunc and OverflowFunc.
	MeterModule = "toolsrv_meter"
	// RefillFunc (left i32) -> i32 is called when the slice is used up, with the fuel that is left, a negative number. It
	// returns the next slice, which should be above 0.
	RefillFunc = "refill"
	// OverflowFunc (left i32) -> i32 is called when the call stack is used up, with the bytes that are left, a negative number. It returns how
	// many are left once the host has added more, or panics to end the call. The guest traps if that is below 0.
	OverflowFunc = "overflow"
)

const (
	ownPrefix    = "toolsrv." // prefix of the added exports: no guest may use it
	startExport  = ownPrefix + "start"
	globalExport = ownPrefix + "global."
)

// The imports that are added, in their order.
const (
	importRefill = iota
	importOverflow
	added
)

// The globals that are added, in their order.
const (
	globalFuel = iota
	globalStack
	globalRefused
	addedGlobals
)

// The types that are added, in their order.
const (
	typeNothing = iota // () -> ()
	typeMap            // (i32) -> i32
	typeTake           // (i32) -> ()
	typeThree          // (i32, i32, i32) -> ()
	addedTypes
)

// mostGlobals is how many globals a module may have, and how many functions it may take references to: every instance pays for each.
const mostGlobals = 10_000

// mostFunctions is how many functions a module may have of its own. The Go compiler has 20,000. Each takes the compiler 8 µs at least.
const mostFunctions = 300_000

// maxCode is how many bytes of code a module may have, before and after metering, if its functions take no memory to compile.
const maxCode = maxBytesTotal / bytesCode

// maxInstructions is how many instructions and targets of br_table a module may have: reading and writing each takes up to 0.1 µs of the server's own
// time. The Go compiler has 15 million, in 32 MB of code.
const maxInstructions = 20_000_000

// maxTable is how many elements of 8 bytes the tables of a module may hold together when it starts, and each of them later. No memory limit counts
// them, and one instruction can write a whole table.
const maxTable = 128 << 10

// maxInit is how many elements and element segments a module may have, whether active, passive or declared: each takes
// 40 bytes and 0.1 µs of every instance. The Go compiler, a module of 49 MB, has 24,000.
const maxInit = 128 << 10

// A Rewritten is a module that can be metered, stopped and reset.
type Rewritten struct {
	// Module has no start function and no active data segment. Active element segments stay.
	Module []byte
	// Data is the content of the active data segments, in their order. The host writes it before it calls Start.
	Data []DataSegment
	// Start is the export of the start function, or "".
	Start string
	// Globals are the module's own mutable globals of the types i32, i64, f32 and f64, in their order.
	Globals []Global
	// Fresh says why an instance can't be reset by resetting its memory and Globals ("table.set in function 12"). It is "" if resetting those is enough.
	Fresh string
	// LinearStack is the stack in the module's memory, or nil if none is known.
	LinearStack *LinearStack
	// These say what an instance takes in addition to its memory: the number of elements and element segments, the number of elements that the tables
	// can hold, and the numbers of globals, including those for ref.func, and of data segments.
	Elements     int
	TableMost    uint64
	AllGlobals   int
	DataSegments int
	// Weight is the predicted cost of compiling Module.
	Weight Weight
	// MemoryMin and MemoryMax are the memory's limits in pages of 64 KiB; both are 0 if there is no memory.
	MemoryMin, MemoryMax uint64
}

// A Weight is a cost of compiling: time, and bytes of memory.
type Weight = weigh.Weight

// A DataSegment is content that belongs at Offset in the memory. Whether it fits into the memory has not been checked.
type DataSegment struct {
	Offset  uint32
	Content []byte // shares memory with the module that was rewritten
}

// A Global is a global that the rewritten module exports as Name.
type Global struct {
	Name string
	Type wasmbin.ValueType
}

// A rewriter is the state of one Rewrite. Indices of functions refer to the original module.
type rewriter struct {
	m    *wasmbin.Module
	dry  bool // the module is only weighed, and what is written is dropped
	data []byte

	types     []wasmbin.FuncType
	functions []uint32 // type of each function, imported ones first
	imported  int      // number of imported functions
	tables    []wasmbin.Table
	memories  []wasmbin.Memory
	globals   int // number of globals, with the imported ones
	announced int // number of data segments in the data count section

	blocks    []byte         // types that are added for blocks
	blockAt   map[string]int // results to the index of such a type
	canonical []int          // for each type, the first one that equals it
	declared  []bool         // functions that ref.func may name
	taken     []bool         // functions that may be in a table
	elements  int            // number of element segments
	tableMost uint64         // elements that the tables could grow to
	grows     bool           // some instruction grows a table
	segments  []int          // length of each data segment, 0 if it is active
	long      map[uint32]int // by index, the data segments that memory.init names and that are longer than a chunk: their index in longOrder
	longOrder []uint32
	refs      map[uint32]int // functions that ref.func names: their index in refOrder
	refOrder  []uint32

	bodies  []function
	flat    []uint8 // cost of each function that its callers are charged for, or 0
	loops   []loop
	joins   []join // joins that cost something, in order of their offsets
	marks   []int  // the serial with which each local was last set, in any function
	serial  int    // serial number of the instruction that is being read
	edges   []uint32
	seen    []int // function that has this edge already, plus 1
	scopes  []scope
	current int // function that is being read
	read    int // instructions and targets of br_table so far
	own     int // number of globals that the module itself declares
	mutable int // number of the module's mutable globals

	pointers               []pointer     // globals that may be the stack pointer
	stackExport, stackName int           // index of the global with that name, plus 1; 0 means none
	globalNames            bool          // the name section has names of globals
	ruler                  *weigh.Ruler  // measures functions as they are read
	compiled               *weigh.Module // the written code, as the compiler will see it

	dataUsed bool // some instruction names a data segment
	out      Rewritten
}

// Rewrite instruments a module so that it can be metered and reset. The new module charges fuel at the entry of each function,
// in each loop, and for instructions whose time depends on an operand; it charges call stack where functions may recurse.
//
// Rewrite checks all indices, so that no invalid index becomes valid because of what it adds. It does not check types: the compiler has to validate
// the result. Beyond what Parse refuses, it refuses instructions that it does not know, and whatever makes a compiler or an instance take more than
// the module's size suggests. Errors give the section or function, and the offset.
//
// Of the custom sections, only the names of functions are kept, since the rest describes the old code.
func Rewrite(m *wasmbin.Module) (*Rewritten, error) { return newRewriter(m, false).rewrite() }

// Weigh makes all the checks that Rewrite makes, and returns the predicted cost of compiling the module. It keeps nothing of what
// Rewrite would write.
func Weigh(m *wasmbin.Module) (Weight, error) {
	r, err := newRewriter(m, true).rewrite()
	if err != nil {
		return Weight{}, err
	}
	return r.Weight, nil
}

func newRewriter(m *wasmbin.Module, dry bool) *rewriter {
	w := &rewriter{
		m:         m,
		dry:       dry,
		data:      m.Bytes(),
		types:     m.Types(),
		functions: m.Functions(),
		imported:  m.ImportedFunctions(),
		tables:    m.Tables(),
		memories:  m.Memories(),
		globals:   len(m.Globals()),
		blockAt:   map[string]int{},
		long:      map[uint32]int{},
		refs:      map[uint32]int{},
	}
	if r := m.Open(wasmbin.SectionDataCount); r.Left() > 0 {
		w.announced = int(r.U32("the number of data segments"))
	}
	return w
}

// rewrite writes the sections in such an order that each finds what it needs from the others.
func (w *rewriter) rewrite() (*Rewritten, error) {
	if err := w.checkFrame(); err != nil {
		return nil, err
	}
	if err := w.weighTypes(); err != nil {
		return nil, err
	}
	w.compareTypes()
	var contents [wasmbin.SectionTag + 1][]byte
	var err error
	write := func(id int, f func(*wasmbin.Reader) []byte) {
		if err != nil {
			return
		}
		r := w.m.Open(id)
		contents[id] = f(r)
		err = r.Err
	}
	write(wasmbin.SectionTable, w.writeTables)
	write(wasmbin.SectionGlobal, w.writeGlobals)
	write(wasmbin.SectionExport, w.writeExports)
	write(wasmbin.SectionElement, w.writeElements)
	write(wasmbin.SectionData, w.writeData)
	write(wasmbin.SectionCode, w.writeCode)
	contents[wasmbin.SectionGlobal] = w.closeGlobals(contents[wasmbin.SectionGlobal])
	write(wasmbin.SectionImport, w.writeImports)
	write(wasmbin.SectionFunction, w.writeFunctions)
	write(wasmbin.SectionType, w.writeTypes)
	if err != nil {
		return nil, err
	}
	if w.dry {
		return &Rewritten{Weight: w.out.Weight}, nil
	}
	memory := w.m.Open(wasmbin.SectionMemory)
	contents[wasmbin.SectionMemory] = memory.Data[memory.Pos:memory.End]
	if w.grows {
		w.out.TableMost = w.tableMost
	}
	if w.dataUsed {
		w.out.DataSegments = len(w.segments)
		contents[wasmbin.SectionDataCount] = wasmbin.AppendU32(nil, uint32(len(w.segments)))
	} else {
		contents[wasmbin.SectionData] = nil
	}
	total := len(wasmbin.Header)
	for _, c := range contents {
		total += len(c) + 6
	}
	named, _, err := w.m.Custom(wasmbin.NameSection)
	if err != nil {
		return nil, err
	}
	names := w.writeNames(&wasmbin.Reader{Data: named, End: len(named)})
	w.findLinearStack()
	out := append(make([]byte, 0, total+len(names)+6), wasmbin.Header...)
	for _, id := range [...]int{wasmbin.SectionType, wasmbin.SectionImport, wasmbin.SectionFunction, wasmbin.SectionTable, wasmbin.SectionMemory, wasmbin.SectionGlobal, wasmbin.SectionExport, wasmbin.SectionElement, wasmbin.SectionDataCount, wasmbin.SectionCode, wasmbin.SectionData} {
		if len(contents[id]) == 0 {
			continue
		}
		out = wasmbin.AppendU32(append(out, byte(id)), uint32(len(contents[id])))
		out = append(out, contents[id]...)
	}
	out = wasmbin.AppendU32(append(out, wasmbin.SectionCustom), uint32(len(names)))
	rewritten := w.out // copied, so that w is not kept alive
	rewritten.Module = append(out, names...)
	return &rewritten, nil
}

// checkFrame refuses names that collide with added ones, and declarations that every instance would pay for. Memories are checked by the sandbox.
func (w *rewriter) checkFrame() error {
	for _, i := range w.m.Imports() {
		if i.Module == MeterModule {
			return fmt.Errorf("wasm: import section: %q is imported from %q, which is reserved for the host", text.Short(i.Name), MeterModule)
		}
	}
	for _, e := range w.m.Exports() {
		if strings.HasPrefix(e.Name, ownPrefix) {
			return fmt.Errorf("wasm: export section: the export %q begins with %q, which is reserved for the host: rename it", text.Short(e.Name), ownPrefix)
		}
	}
	if w.globals > mostGlobals {
		return fmt.Errorf("wasm: global section: the module has %d globals; the limit is %d", w.globals, mostGlobals)
	}
	if n := len(w.functions) - w.imported; n > mostFunctions {
		return fmt.Errorf("wasm: function section: the module has %d functions; the limit is %d: split the module, or optimise it with the compiler or wasm-opt", n, mostFunctions)
	}
	if n := w.m.Open(wasmbin.SectionCode).Left(); n > maxCode {
		return fmt.Errorf("wasm: code section: the module's code has more than %d MB: split the module, or optimise it with the compiler or wasm-opt", maxCode>>20)
	}
	total := uint64(0)
	for _, t := range w.tables {
		total += t.Min
	}
	w.out.TableMost = total // unless they grow
	if total > maxTable {
		return fmt.Errorf("wasm: table section: the module's tables have %d elements; the limit is %d", total, maxTable)
	}
	if len(w.memories) > 0 {
		memory := w.memories[0]
		w.out.MemoryMin, w.out.MemoryMax = memory.Min, 1<<16
		if memory.HasMax {
			w.out.MemoryMax = memory.Max
		}
	}
	return nil
}

// compareTypes finds equal types: an indirect call by one of them can reach the functions of all.
func (w *rewriter) compareTypes() {
	w.canonical = make([]int, len(w.types))
	first := make(map[string]int, len(w.types))
	var key []byte
	for i, t := range w.types {
		key = key[:0]
		for _, v := range t.Params {
			key = append(key, byte(v))
		}
		key = append(key, 0)
		for _, v := range t.Results {
			key = append(key, byte(v))
		}
		at, ok := first[string(key)]
		if !ok {
			at = i
			first[string(key)] = i
		}
		w.canonical[i] = at
	}
}

// addedType returns the index of an added type.
func (w *rewriter) addedType(number uint32) uint32 { return uint32(len(w.types)) + number }

// shift returns the new index of a function.
func (w *rewriter) shift(index uint32) uint32 {
	if int64(index) >= int64(w.imported) {
		return index + added
	}
	return index
}

// notFresh records why an instance can't be reset in place, unless a reason is known already.
func (w *rewriter) notFresh(what string) {
	if w.out.Fresh == "" {
		w.out.Fresh = fmt.Sprintf("%s in function %d", what, w.imported+w.current)
	}
}

// Limits on the cost of compiling, as package weigh predicts it. Nothing can stop wazero's compiler, and a function of 28 KB can make it take a
// gigabyte. No hostile function within these limits has taken more than 5 s or 512 MB. A perfectly ordinary module of 20 MB takes 16 s and 350 MB, so
// the limits grow with the code.
const (
	maxNanos      = 3_000_000_000 // of a function
	maxBytes      = 384 << 20
	maxBytesTotal = 512 << 20 // most memory for the most expensive function; bytesCode for each byte of code is added
	bytesCode     = 14
	maxNanosBase  = 3_500_000_000 // most time for all functions together; maxNanosByte for each byte of code is added
	maxNanosByte  = 1_200
)

// wazero compiles an entry point for functions of each type, used or not, and does so again whenever it loads code. No module that a compiler has
// made had a fiftieth of the types that this limit allows.
const (
	maxNanosTypes = 500_000_000
	nanosType     = 10_000
	nanosValue    = 2_000 // time for each parameter and result
	bytesType     = 1_000
	bytesValue    = 150
)

// weighTypes adds the cost of compiling the entry points of functions, and refuses the module if that is too much.
func (w *rewriter) weighTypes() error {
	types, values := int64(len(w.types)), int64(0)
	for _, t := range w.types {
		values += int64(len(t.Params) + len(t.Results))
	}
	w.out.Weight = weigh.Weight{Nanos: types*nanosType + values*nanosValue, Bytes: types*bytesType + values*bytesValue}
	if w.out.Weight.Nanos > maxNanosTypes {
		return fmt.Errorf("wasm: type section: compiling the module's %d types with %d parameters and results would take too long, about %s: leave out those that nothing uses",
			types, values, w.out.Weight.Time().Round(100*time.Millisecond))
	}
	return nil
}

// scale returns a scale for the functions as they are written. own has the types of the added ones.
func (w *rewriter) scale(own []uint32) *weigh.Scale {
	m := &weigh.Module{Types: w.signatures(), Imported: w.imported + added, Globals: w.globals + addedGlobals + len(w.refOrder), Mutable: w.mutable + addedGlobals}
	m.Types = append(m.Types, weigh.Signature{}, weigh.Signature{Params: 1, Results: 1}, weigh.Signature{Params: 1}, weigh.Signature{Params: 3})
	m.Functions = append(m.Functions, w.functions[:w.imported]...)
	for range added {
		m.Functions = append(m.Functions, w.addedType(typeMap))
	}
	m.Functions = append(append(m.Functions, w.functions[w.imported:]...), own...)
	w.compiled = m
	return weigh.NewScale(m)
}

// signatures returns the types as package weigh needs them.
func (w *rewriter) signatures() []weigh.Signature {
	all := make([]weigh.Signature, 0, len(w.types)+addedTypes)
	for _, t := range w.types {
		all = append(all, weigh.Signature{Params: len(t.Params), Results: len(t.Results)})
	}
	return all
}

// weigh adds the cost of compiling a function whose body has been written, and refuses the module if the cost is too much.
func (w *rewriter) weigh(s *weigh.Scale, r *wasmbin.Reader, f *function, body []byte) {
	if len(w.compiled.Types) < len(w.types)+addedTypes+len(w.blockAt) { // the type of the block that contains the function's body
		w.compiled.Types = append(w.compiled.Types, weigh.Signature{Results: len(f.results)})
	}
	t := w.types[w.functions[w.imported+w.current]]
	count, err := s.Count(weigh.Signature{Params: len(t.Params), Results: len(t.Results)}, body)
	if err != nil {
		r.Fail(f.start, "weigh the rewritten code: %w", err)
		return
	}
	weight := count.Weight()
	if alone := weight.Grow(); alone.Nanos > maxNanos || alone.Bytes > maxBytes {
		r.Fail(f.start, "compiling the function would take too much, about %s and %d MB, because %s: split it, or optimise it with the compiler or wasm-opt",
			alone.Time().Round(100*time.Millisecond), alone.Bytes>>20, count.Cause(alone.Bytes/maxBytes > alone.Nanos/maxNanos))
	}
	w.out.Weight = w.out.Weight.Add(weight)
	if w.out.Weight.Nanos > maxNanosBase+maxNanosByte*maxCode { // too much, whatever follows
		r.Fail(f.start, "compiling the module's %d functions would take too long, more than %s: split the module, or optimise it with the compiler or wasm-opt",
			len(w.bodies), w.out.Weight.Time().Round(100*time.Millisecond))
	}
}

// total completes the weight of a module, and refuses the module if the weight is too much. code is the size of the module's code in bytes.
func (w *rewriter) total(r *wasmbin.Reader, code int) {
	w.out.Weight = w.out.Weight.Grow()
	w.out.Weight.Bytes += bytesCode * int64(code)
	if w.out.Weight.Nanos > maxNanosBase+maxNanosByte*int64(code) || w.out.Weight.Bytes > maxBytesTotal {
		r.Fail(r.End, "compiling the module's %d functions would take too much, about %s and %d MB: split the module, or optimise it with the compiler or wasm-opt",
			len(w.bodies), w.out.Weight.Time().Round(100*time.Millisecond), w.out.Weight.Bytes>>20)
	}
}
