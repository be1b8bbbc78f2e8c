package instrument

import (
	"github.com/toolsrv/toolsrv/internal/runtime/internal/opcode"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
)

// Where ways join, at the end of a block or the beginning of a loop, the compiler moves a value on each way for each local that is needed there and was
// set on one of them. A few find registers. Each of the others is a load and a store, about a nanosecond. Where 3,072 vectors were set in a branch that
// was hardly ever taken, each pass took 4 µs. So code that gets to a join pays for the locals beyond freeMoves.
const (
	freeMoves = 16
	moves     = 4 // for a unit
)

// A join is what it costs to get to where ways join: the end of the block or if, or the beginning of the loop, that the instruction at an offset opens.
type join struct{ at, cost uint32 }

// joinAt returns what it costs to get to the join of the scope that the instruction opens.
func (m *meter) joinAt(in *wasmbin.Instruction) int {
	for m.join < len(m.w.joins) && int(m.w.joins[m.join].at) < in.Start {
		m.join++
	}
	if m.join < len(m.w.joins) && int(m.w.joins[m.join].at) == in.Start {
		return int(m.w.joins[m.join].cost)
	}
	return 0
}

// moved returns the cost of an instruction that leads to a join.
func (m *meter) moved(in *wasmbin.Instruction) int {
	switch in.Op {
	case opcode.Loop:
		return 2 * m.joinAt(in) // there is another loop around it, which calls the host for fuel
	case opcode.If:
		return m.joinAt(in) // the way past an if without an else
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
