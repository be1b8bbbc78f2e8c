package instrument

import (
	"github.com/toolsrv/toolsrv/internal/runtime/internal/opcode"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
)

// Fuel is charged in advance. A charge takes an amount from the fuel and, if the rest is negative, asks the host for more. The amount is a credit for
// the instructions that follow. While a body is written, meter keeps track of the credit that is left on the most expensive path to an instruction,
// and inserts a charge if it is not enough.
//
// The first charge is at the function's entry. A loop begins with a credit that is paid on entry, and each branch back to its head charges what is
// then missing from that credit. So one pass over the body is enough, and each iteration pays for itself.
//
// chargeMost is the most that a function's entry or a loop is charged in advance. If the whole function or loop costs less, only that is charged. A
// larger value would waste fuel on short paths through long code; a smaller one would mean more charges.
const chargeMost = 256

// unreached is the credit of unreachable code.
const unreached = 1 << 40

// A meter writes the body of a function with its metering.
type meter struct {
	w      *rewriter
	f      *function
	r      *wasmbin.Reader
	out    []byte
	copied int // offset of the first byte of the body that has not been written
	scopes []scope
	levels []level // the function, and each open loop
	labels int     // number of labels that are open in the written code
	temp   uint32  // a local that the rewriter adds
	loop   int     // index of the next loop
	join   int     // index in rewriter.joins: earlier ones are no longer needed

	dispatches []dispatch // that are open
}

// A level is the function, or a loop in it, with a credit of its own.
type level struct {
	credit int
	begin  int // credit with which it begins
}

// write appends the size of the body and the body to out.
func (m *meter) write(out []byte) []byte {
	m.out = m.out[:0]
	r := m.r
	runs := int(r.U32("runs of locals"))
	m.out = wasmbin.AppendU32(m.out, uint32(runs)+1)
	m.out = append(m.out, r.Data[r.Pos:m.f.code]...)
	m.out = append(m.out, 1, byte(wasmbin.I32))
	r.Pos, m.copied = m.f.code, m.f.code
	m.temp, m.loop = uint32(m.f.locals), m.f.loops
	begin := min(m.f.cost, chargeMost)
	m.levels = append(m.levels[:0], level{begin, begin})
	m.dispatches = m.dispatches[:0]
	m.scopes, m.labels = m.scopes[:0], 0
	m.open(scope{op: opcode.Block, loop: -1, result: len(m.f.results), least: unreached}, 1)
	if m.f.stack > 0 {
		m.enter(begin)
	} else {
		m.subtract(globalFuel, begin)
		m.global(opcode.GlobalGet, globalFuel)
		m.slowBelowAtEntry()
	}
	m.body()
	if m.f.stack > 0 {
		m.global(opcode.GlobalGet, globalStack)
		m.constant(m.f.stack)
		m.op(opcode.I32Add)
		m.global(opcode.GlobalSet, globalStack)
		m.op(opcode.End)
	}
	out = wasmbin.AppendU32(out, uint32(len(m.out)))
	return append(out, m.out...)
}

// body writes the instructions.
func (m *meter) body() {
	in, last, before := &wasmbin.Instruction{}, &wasmbin.Instruction{}, &wasmbin.Instruction{}
	for m.r.Err == nil && len(m.scopes) > 0 {
		in.Read(m.r)
		top := &m.levels[len(m.levels)-1]
		cost := m.w.price(in, m.scopes, m.f)
		if in.Op == opcode.Loop {
			cost += m.w.loops[m.loop].begin()
		}
		cost += m.moved(in)
		ahead, way := m.ahead(in, last, before)
		label := in.A
		if cost += way; ahead > 0 {
			in.A = uint32(len(m.scopes) - 1 - ahead) // only for the credit: the written branch stays the same
		}
		back := m.missing(in, cost)
		switch refills := back > 0 && in.Op != opcode.BrTable && m.scopeAt(in.A).refills; {
		case back > 0 && !refills:
			m.pay(in, back)
			back = 0
		case top.credit < cost && !(refills && in.Op == opcode.Br):
			m.pay(in, max(chargeMost, cost))
			back = m.missing(in, cost)
		}
		top.credit -= cost
		m.instruction(in, last)
		if in.Op == opcode.Br || in.Op == opcode.BrIf {
			m.jump(in, label, back)
		}
		in, last, before = before, in, last
	}
	m.flush(m.r.Pos)
}

// pay writes a charge before the instruction.
func (m *meter) pay(in *wasmbin.Instruction, amount int) {
	m.flush(in.Start)
	m.charge(amount)
	m.levels[len(m.levels)-1].credit += amount
}

// missing returns how much credit a branch back to a loop must add, so that the loop begins with its full credit. cost is what the branch itself
// costs.
func (m *meter) missing(in *wasmbin.Instruction, cost int) int {
	most := 0
	look := func(depth uint32) {
		if s := m.scopeAt(depth); s.op == opcode.Loop {
			need := m.levels[s.level].begin - m.levels[s.level].credit
			if s.level == len(m.levels)-1 {
				need += cost
			} else {
				need += max(0, cost-m.levels[len(m.levels)-1].credit)
			}
			most = max(most, need)
		}
	}
	switch in.Op {
	case opcode.Br, opcode.BrIf:
		look(in.A)
	case opcode.BrTable:
		labels := in.Labels(m.r.Data)
		for range int64(in.A) + 1 {
			look(labels.U32("a label"))
		}
	}
	return most
}

// instruction writes an instruction that has been paid for.
func (m *meter) instruction(in, last *wasmbin.Instruction) {
	depth := len(m.levels) - 1
	credit := &m.levels[depth].credit
	switch in.Op {
	case opcode.Block, opcode.If:
		params, results := m.w.arity(m.r, in)
		m.open(scope{op: byte(in.Op), params: params, result: results, level: depth, least: unreached, before: *credit, join: m.joinAt(in)}, 1)
	case opcode.Loop:
		if !m.writeUnrolled(in) {
			m.enterLoop(in)
		}
	case opcode.Else:
		s := &m.scopes[len(m.scopes)-1]
		s.least, s.op = min(s.least, *credit), opcode.Else
		*credit = s.before
	case opcode.End:
		s := m.close()
		m.closeDispatch()
		switch s.op {
		case opcode.Loop:
			m.levels = m.levels[:depth]
		case opcode.If:
			*credit = min(*credit, s.least, s.before)
		default:
			*credit = min(*credit, s.least)
		}
	case opcode.Br:
		m.branch(in.A)
		*credit = unreached
	case opcode.BrIf:
		m.branch(in.A)
	case opcode.BrTable:
		m.branchTable(in)
		*credit = unreached
	case opcode.Unreachable:
		*credit = unreached
	case opcode.Return:
		*credit = unreached
		if m.f.stack > 0 {
			m.replace(in)
			m.index(opcode.Br, m.label(uint32(len(m.scopes)-1)))
		}
	case opcode.Call:
		m.replace(in)
		m.index(opcode.Call, m.w.shift(in.A))
	case opcode.RefFunc:
		m.replace(in)
		m.index(opcode.GlobalGet, uint32(m.w.globals+addedGlobals+m.w.refs[in.A]))
	default:
		m.bulk(in, last)
	}
}

// open opens a scope. labels is how many labels are written for it.
func (m *meter) open(s scope, labels int) {
	m.labels += labels
	s.labels = m.labels
	m.scopes = append(m.scopes, s)
}

// close closes the innermost scope, which ends with the instruction just read, and returns it.
func (m *meter) close() scope {
	s := m.scopes[len(m.scopes)-1]
	m.scopes = m.scopes[:len(m.scopes)-1]
	m.labels--
	if s.refills {
		m.flush(m.r.Pos)
		m.closeRefilled()
		m.labels -= refilledLabels - 1
	}
	return s
}

func (m *meter) scopeAt(depth uint32) *scope { return &m.scopes[len(m.scopes)-1-int(depth)] }

// label returns the label of a scope in the written code.
func (m *meter) label(depth uint32) uint32 { return uint32(m.labels - m.scopeAt(depth).labels) }

// branch records the credit with which a branch arrives at its label. The head of a loop has a credit of its own.
func (m *meter) branch(depth uint32) {
	s := m.scopeAt(depth)
	s.least = min(s.least, m.levels[s.level].credit)
}

// jump writes a br or br_if that also charges.
func (m *meter) jump(in *wasmbin.Instruction, depth uint32, charge int) {
	label := m.label(depth)
	switch {
	case charge > 0:
		m.replace(in)
		if in.Op == opcode.Br {
			m.back(label, charge)
			return
		}
		m.op(opcode.If, opcode.BlockEmpty)
		m.back(label+1, charge)
		m.op(opcode.End)
	case label != depth:
		m.replace(in)
		m.index(byte(in.Op), label)
	}
}

// branchTable writes a br_table.
func (m *meter) branchTable(in *wasmbin.Instruction) {
	m.replace(in)
	m.index(opcode.BrTable, in.A)
	labels := in.Labels(m.r.Data)
	for range int64(in.A) + 1 {
		depth := labels.U32("a label")
		m.branch(depth)
		m.out = wasmbin.AppendU32(m.out, m.label(depth))
	}
}

// charge writes a charge of fuel.
func (m *meter) charge(amount int) {
	m.subtract(globalFuel, amount)
	m.global(opcode.GlobalGet, globalFuel)
	m.slowBelow()
}

// enter writes the entry of a function that also charges for its call stack. The body becomes a block, so that every way out of the function leads to
// the end of that block, where the charge is given back.
func (m *meter) enter(amount int) {
	m.subtract(globalFuel, amount)
	m.subtract(globalStack, m.f.stack)
	m.global(opcode.GlobalGet, globalFuel)
	m.global(opcode.GlobalGet, globalStack)
	m.op(opcode.I32Or)
	m.slowBelowAtEntry()
	m.op(opcode.Block)
	m.out = append(m.out, m.w.blockOf(m.f.results)...)
}

func (m *meter) subtract(global uint32, amount int) {
	m.global(opcode.GlobalGet, global)
	m.constant(amount)
	m.op(opcode.I32Sub)
	m.global(opcode.GlobalSet, global)
}

// slowBelow takes a number from the operand stack, and calls the host if it is below 0.
//
// The if makes wazero forget which addresses it has checked. wazero keeps a list of them at the end of each block. When nothing shortened that list,
// 100,000 loads in a row with a charge after each fiftieth took 8 GB to compile.
func (m *meter) slowBelow() {
	m.constant(0)
	m.op(opcode.I32LtS, opcode.If, opcode.BlockEmpty)
	m.callOwn(ownSlow)
	m.op(opcode.End)
}

// slowBelowAtEntry is slowBelow at a place where no address has been checked yet. With an else, wazero keeps values in registers that it would
// otherwise spill for the call.
func (m *meter) slowBelowAtEntry() {
	m.constant(0)
	m.op(opcode.I32GeS, opcode.If, opcode.BlockEmpty, opcode.Else)
	m.callOwn(ownSlow)
	m.op(opcode.End)
}

// callOwn writes a call of one of the functions that the rewriter adds.
func (m *meter) callOwn(number int) {
	m.index(opcode.Call, m.w.ownFunction(number))
}

// flush copies the body up to the offset.
func (m *meter) flush(to int) {
	m.out = append(m.out, m.r.Data[m.copied:to]...)
	m.copied = to
}

// replace copies the body up to the instruction and leaves the instruction out.
func (m *meter) replace(in *wasmbin.Instruction) {
	m.flush(in.Start)
	m.copied = m.r.Pos
}

func (m *meter) op(ops ...byte) { m.out = append(m.out, ops...) }

func (m *meter) index(op byte, index uint32) { m.out = wasmbin.AppendU32(append(m.out, op), index) }

func (m *meter) constant(n int) { m.out = wasmbin.AppendS32(append(m.out, opcode.I32Const), int32(n)) }

// global writes an access to one of the globals that the rewriter adds.
func (m *meter) global(op byte, which uint32) { m.index(op, uint32(m.w.globals)+which) }
