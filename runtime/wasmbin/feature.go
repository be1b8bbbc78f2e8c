package wasmbin

import (
	"slices"

	"github.com/toolsrv/toolsrv/runtime/internal/opcode"
)

// The features beyond WebAssembly 1.0 that Features looks for, by the names of LLVM's target features.
const (
	featureBulkMemory = "bulk-memory"
	featureMultiValue = "multivalue"
	featureFPToInt    = "nontrapping-fptoint"
	featureReferences = "reference-types"
	featureSignExt    = "sign-ext"
	featureSIMD       = "simd128"
)

// Features returns the features beyond WebAssembly 1.0 that the types and the code of the module use, sorted. An unknown
// instruction is an error.
func (m *Module) Features() ([]string, error) {
	used := map[string]bool{featureBulkMemory: m.announced >= 0, featureReferences: len(m.tables) > 1}
	for _, t := range m.types {
		m.note(used, t.Params...)
		m.note(used, t.Results...)
		if len(t.Results) > 1 {
			used[featureMultiValue] = true
		}
	}
	if err := m.codeFeatures(used); err != nil {
		return nil, err
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

// codeFeatures notes the features that the code section uses.
func (m *Module) codeFeatures(used map[string]bool) error {
	var in Instruction
	r := m.Open(SectionCode)
	if r.Left() == 0 {
		return nil
	}
	section := r.End
	for range r.count(maxFunctions, "bodies") {
		size := int(r.U32("a body's size"))
		r.End = r.Pos + min(size, r.Left())
		for range r.count(maxLocals, "runs of locals") {
			r.U32("a number of locals")
			m.note(used, r.ValueType("locals"))
		}
		for r.Left() > 0 {
			in.Read(r)
			if name := m.featureOf(&in); name != "" {
				used[name] = true
			}
		}
		if r.Err != nil {
			return r.Err
		}
		r.End = section
	}
	return nil
}

// featureOf returns the feature that an instruction belongs to, or "".
func (m *Module) featureOf(in *Instruction) string {
	switch op := in.Op; {
	case op >= opcode.I32Extend8S && op <= opcode.I64Extend32S:
		return featureSignExt
	case op == opcode.TableGet, op == opcode.TableSet, op == opcode.RefNull, op == opcode.RefFunc, op == opcode.RefIsNull, op == opcode.SelectTyped,
		op == opcode.TableGrow, op == opcode.TableSize, op == opcode.TableFill, op == opcode.CallIndirect && in.B > 0:
		return featureReferences
	case op>>8 == opcode.Bulk && op&0xff < 8:
		return featureFPToInt
	case op >= opcode.MemoryInit && op <= opcode.TableCopy:
		return featureBulkMemory
	case op>>8 == opcode.Vector:
		return featureSIMD
	case op == opcode.Block, op == opcode.Loop, op == opcode.If:
		if in.Block >= 0 && in.Block < int64(len(m.types)) && (len(m.types[in.Block].Params) > 0 || len(m.types[in.Block].Results) > 1) {
			return featureMultiValue
		}
	}
	return ""
}
