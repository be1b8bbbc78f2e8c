package sandbox

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// rewriteVersion is part of the key of compiled code: raise it when harden makes something else of a module.
const rewriteVersion = 1

// harden makes of a module, whose frame package wasmbin has checked, one that wazero can stop and bound:
//   - Each function begins with an empty loop. wazero looks at the deadline at the head of a loop only, so that
//     without this a recursion that branches in two would run for ever.
//   - Each table gets a maximum. wazero lets table.grow take 32 GiB, which no memory limit counts.
//   - Custom sections are left out, but for function names of reasonable length: they do nothing for the program,
//     and wazero writes the names of 30 frames into the error of each trap.
func harden(module []byte) ([]byte, error) {
	out := make([]byte, 0, len(module)+len(module)/8)
	out = append(out, module[:min(8, len(module))]...)
	r := &scanner{rest: module[len(out):]}
	for len(r.rest) > 0 && r.err == nil {
		id := r.byte()
		content := r.bytes(r.u32())
		if r.err != nil {
			break
		}
		s := &scanner{rest: content}
		switch id {
		case 0:
			if !traceable(content) {
				continue
			}
		case 4:
			content = boundTables(s)
		case 10:
			content = enterByLoop(s, len(content))
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
func enterByLoop(s *scanner, length int) []byte {
	n := s.u32()
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
		if s.err == nil {
			s.err = locals.err
		}
		if s.err != nil {
			return nil
		}
		head := len(body) - len(locals.rest)
		out = binary.AppendUvarint(out, uint64(len(body)+3))
		out = append(out, body[:head]...)
		out = append(out, 0x03, 0x40, 0x0b) // loop, without results, end
		out = append(out, body[head:]...)
	}
	return out
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

func (s *scanner) cutOff() {
	if s.err == nil {
		s.err = errors.New("the module is cut off")
	}
	s.rest = nil
}
