package instrument

import (
	"github.com/toolsrv/toolsrv/internal/runtime/internal/opcode"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
)

// Paths join at the end of a block and at the beginning of a loop. There the compiler moves a value, on each path, for each local that is needed
// afterwards and was set on one of the paths. Registers hold a few of them. Each of the others takes a load and a store, about a nanosecond. If
// 3,072 vectors were set in a branch that was hardly ever taken, each pass took 4 µs. So code that reaches a join is charged for the locals
// beyond freeMoves.
const (
	freeMoves = 16
	moves     = 4 // for a unit
)

// A join is the cost of reaching the place where paths join: the end of the block or if, or the beginning of the loop, that the instruction at
// an offset opens.
type join struct{ at, cost uint32 }

// joinAt returns the cost of reaching the join of the scope that the instruction opens.
func (m *meter) joinAt(in *wasmbin.Instruction) int {
	for m.join < len(m.w.joins) && int(m.w.joins[m.join].at) < in.Start {
		m.join++
	}
	if m.join < len(m.w.joins) && int(m.w.joins[m.join].at) == in.Start {
		return int(m.w.joins[m.join].cost)
	}
	return 0
}

// moved returns the cost of the joins that an instruction leads to.
func (m *meter) moved(in *wasmbin.Instruction) int {
	switch in.Op {
	case opcode.Loop:
		return 2 * m.joinAt(in) // the loop will be inside another loop, which calls the host for fuel
	case opcode.If:
		return m.joinAt(in) // the path past an if without an else
	case opcode.Else, opcode.End:
		if s := &m.scopes[len(m.scopes)-1]; s.op != opcode.Loop {
			return s.join
		}
	case opcode.Br, opcode.BrIf:
		return m.scopeAt(in.A).join
	case opcode.BrTable:
		most := 0
		labels := in.Labels(m.r.Data)
		for range int64(in.A) + 1 {
			most = max(most, m.scopeAt(labels.U32("a label")).join)
		}
		return most
	}
	return 0
}
