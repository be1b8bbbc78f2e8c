package sandbox

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// rewriteVersion is part of the key of compiled code: raise it when harden makes something else of a module.
const rewriteVersion = 1

// What each instance pays for, beside memory and tables: the number of globals, and the size of the element section.
const (
	maxGlobals  = 10_000
	maxElements = 4 << 20
)

// harden makes of a module, whose frame package wasmbin has checked, one that wazero can stop and bound:
//   - Each function begins with an empty loop. wazero looks at the deadline at the head of a loop only, so that
//     without this a recursion that branches in two would run for ever.
//   - A function has no more branches than the compiler can deal with.
//   - What each instance costs beside its memory is bounded: globals and elements.
//   - Each table gets a maximum. wazero lets table.grow take 32 GiB, which no memory limit counts.
//   - Custom sections are left out, but for function names of reasonable length: they do nothing for the program,
//     and wazero writes the names of 30 frames into the error of each trap.
func harden(module []byte) ([]byte, error) {
	out := make([]byte, 0, len(module)+len(module)/8)
	out = append(out, module[:min(8, len(module))]...)
	r := &scanner{rest: module[len(out):]}
	arity := 0 // of the widest function type; types stand before code
	for len(r.rest) > 0 && r.err == nil {
		id := r.byte()
		content := r.bytes(r.u32())
		if r.err != nil {
			break
		}
		s := &scanner{rest: content}
		switch id {
		case 1:
			arity = widest(s)
			s.rest = nil
		case 0:
			if !traceable(content) {
				continue
			}
		case 4:
			content = boundTables(s)
		case 6:
			if n := s.u32(); n > maxGlobals {
				return nil, fmt.Errorf("the module has %d globals, the limit is %d", n, maxGlobals)
			}
			s.rest = nil
		case 9:
			if len(content) > maxElements {
				return nil, fmt.Errorf("the module's elements take %d bytes, the limit is %s", len(content), size(maxElements))
			}
		case 10:
			content = enterByLoop(s, len(content), arity)
		}
		if s.err != nil {
			return nil, s.err
		}
		if len(content) > 1<<31 {
			return nil, fmt.Errorf("section %d gets too large", id)
		}
		out = append(out, id)
		out = binary.AppendUvarint(out, uint64(len(content)))
		out = append(out, content...)
	}
	return out, r.err
}

// enterByLoop rewrites the code section.
func enterByLoop(s *scanner, length, arity int) []byte {
	n := s.u32()
	total := 0
	out := make([]byte, 0, length+length/8)
	out = binary.AppendUvarint(out, uint64(n))
	for range n {
		body := s.bytes(s.u32())
		locals := &scanner{rest: body}
		for range locals.u32() {
			locals.u32()
			locals.byte() // the type: package wasmbin lets types of one byte pass only
			if locals.err != nil {
				break
			}
		}
		if s.fail(locals.err); s.err != nil {
			return nil
		}
		head := len(body) - len(locals.rest)
		cost := s.branches(locals, arity)
		if total += cost * cost; total > maxCost {
			s.fail(errors.New("the module has too many functions with too many branches: split it"))
		}
		if s.err != nil {
			return nil
		}
		out = binary.AppendUvarint(out, uint64(len(body)+3))
		out = append(out, body[:head]...)
		out = append(out, 0x03, 0x40, 0x0b) // loop, without results, end
		out = append(out, body[head:]...)
	}
	return out
}

// wazero's compiler takes time by the square of the number of branches in a function, and some kilobytes of memory for
// each: 10,000 take a second, a million would take hours and all of the machine's memory, and nothing can
// stop it. cmd/go has 4,280 in its worst function, and squares of 5e8 together.
// A call takes memory for each parameter and result of its type.
const (
	maxBranches = 20_000
	maxCost     = 2_000_000_000 // of the squares together: 25 s
	maxBody     = 2 << 20       // bytes
	maxValues   = 4_000_000
)

// widest returns the most parameters and results that a type of the type section has together.
func widest(s *scanner) int {
	most := 0
	for range s.u32() {
		s.byte() // the form: package wasmbin lets function types pass only
		params := s.u32()
		s.bytes(params)
		results := s.u32()
		s.bytes(results)
		if s.err != nil {
			break
		}
		most = max(most, int(params+results))
	}
	return most
}

// branches counts what makes blocks of a function's body. Errors of walked become the scanner's.
func (s *scanner) branches(walked *scanner, arity int) int {
	body := *walked
	n, calls := 0, 0
	for len(body.rest) > 0 && body.err == nil {
		op := body.byte()
		switch {
		case op >= 0x02 && op <= 0x04: // block, loop, if: the type is one byte or an index
			body.skip(5)
			n++
		case op == 0x05: // else
			n++
		case op == 0x0c, op == 0x0d: // br, br_if
			body.u32()
			n++
		case op == 0x0e: // br_table
			targets := body.u32()
			for range targets {
				body.u32()
				if body.err != nil {
					break
				}
			}
			body.u32()
			n += int(targets)
		case op == 0x00, op == 0x01, op == 0x0b, op == 0x0f, op == 0x1a, op == 0x1b, op == 0xd1, op >= 0x45 && op <= 0xc4:
		case op == 0x10: // call
			body.u32()
			calls++
		case op >= 0x20 && op <= 0x26, op == 0x3f, op == 0x40, op == 0xd0, op == 0xd2:
			body.u32() // an index, or a byte
		case op == 0x11: // call_indirect
			body.u32()
			body.u32()
			calls++
		case op >= 0x28 && op <= 0x3e: // loads and stores
			body.u32()
			body.u32()
		case op == 0x1c: // select with types
			body.bytes(body.u32())
		case op == 0x41:
			body.skip(5)
		case op == 0x42:
			body.skip(10)
		case op == 0x43:
			body.bytes(4)
		case op == 0x44:
			body.bytes(8)
		case op == 0xfc:
			body.bulk()
		case op == 0xfd:
			body.vector()
		default:
			body.fail(fmt.Errorf("the instruction %#x is not supported", op))
		}
	}
	s.fail(body.err)
	switch {
	case len(walked.rest) > maxBody:
		s.fail(fmt.Errorf("a function has %d bytes, the limit is %s: split it", len(walked.rest), size(maxBody)))
	case n > maxBranches:
		s.fail(fmt.Errorf("a function has %d branches, the limit is %d: split it", n, maxBranches))
	case (n+calls)*arity > maxValues:
		s.fail(fmt.Errorf("a function has %d calls and branches in a module with types of %d parameters and results, too many to compile: split it", n+calls, arity))
	}
	return n
}

// bulk passes over the operands of an instruction with the prefix 0xfc.
func (s *scanner) bulk() {
	switch op := s.u32(); op {
	case 0, 1, 2, 3, 4, 5, 6, 7: // conversions
	case 9, 11, 13, 15, 16, 17:
		s.u32()
	case 8, 10, 12, 14:
		s.u32()
		s.u32()
	default:
		s.fail(fmt.Errorf("the instruction 0xfc %d is not supported", op))
	}
}

// vector passes over the operands of an instruction with the prefix 0xfd.
func (s *scanner) vector() {
	switch op := s.u32(); {
	case op <= 11, op == 92, op == 93: // loads and stores
		s.u32()
		s.u32()
	case op == 12, op == 13: // a constant, a shuffle
		s.bytes(16)
	case op >= 21 && op <= 34: // lanes
		s.byte()
	case op >= 84 && op <= 91: // loads and stores of lanes
		s.u32()
		s.u32()
		s.byte()
	case op > 255:
		s.fail(fmt.Errorf("the instruction 0xfd %d is not supported", op))
	}
}

// skip passes over a LEB128 number of at most that many bytes.
func (s *scanner) skip(most int) {
	for range most {
		if s.byte() < 0x80 {
			return
		}
	}
	s.cutOff()
}

// boundTables rewrites the table section.
func boundTables(s *scanner) []byte {
	n := s.u32()
	out := binary.AppendUvarint(nil, uint64(n))
	for range n {
		kind := s.byte()
		if kind == 0x40 {
			s.err = errors.New("a table with an initial value is not supported: fill it by an element segment")
		}
		bounded := s.byte() == 1
		least, most := s.u32(), uint32(maxTableElements)
		if bounded {
			most = min(most, s.u32())
		}
		if s.err != nil {
			return nil
		}
		out = append(out, kind, 1)
		out = binary.AppendUvarint(out, uint64(least))
		out = binary.AppendUvarint(out, uint64(max(least, most)))
	}
	return out
}

// maxFunctionName is the longest name, in bytes, that may stand in a stack trace.
const maxFunctionName = 4 << 10

// traceable reports whether a custom section is one of names that are good for stack traces.
func traceable(content []byte) bool {
	s := &scanner{rest: content}
	if string(s.bytes(s.u32())) != "name" {
		return false
	}
	for len(s.rest) > 0 && s.err == nil {
		id := s.byte()
		sub := &scanner{rest: s.bytes(s.u32())}
		switch id {
		case 0: // the module's name, which is part of each function's
			if sub.u32() > maxFunctionName {
				return false
			}
		case 1:
			for range sub.u32() {
				sub.u32()
				if name := sub.bytes(sub.u32()); sub.err != nil || len(name) > maxFunctionName {
					return false
				}
			}
		}
	}
	return s.err == nil
}

// A scanner reads from bytes; its first error sticks.
type scanner struct {
	rest []byte
	err  error
}

func (s *scanner) byte() byte {
	b := s.bytes(1)
	if len(b) == 0 {
		return 0
	}
	return b[0]
}

func (s *scanner) bytes(n uint32) []byte {
	if s.err != nil || uint64(n) > uint64(len(s.rest)) {
		s.cutOff()
		return nil
	}
	b := s.rest[:n:n]
	s.rest = s.rest[n:]
	return b
}

func (s *scanner) u32() uint32 {
	if s.err != nil {
		return 0
	}
	v, n := binary.Uvarint(s.rest)
	if n <= 0 || n > 5 || v > 1<<32-1 {
		s.cutOff()
		return 0
	}
	s.rest = s.rest[n:]
	return uint32(v)
}

func (s *scanner) cutOff() { s.fail(errors.New("the module is cut off")) }

// fail keeps the first error.
func (s *scanner) fail(err error) {
	if s.err != nil || err == nil {
		return
	}
	s.err = err
	s.rest = nil
}
