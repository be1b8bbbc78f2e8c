package instrument

import "slices"

// A global bounds the call stack. A function that can be part of a recursion takes from it, on entry, what an activation needs, and gives that back
// on return. Doing so in every function would cost too much. So only some functions charge, but enough of them that every cycle in the call graph
// has one. Each of them also charges for the functions that it may call in between. Functions that charge are:
//   - those with an indirect call, which may lead to any function in a table;
//   - those that a walk through the direct calls reaches again while it is still inside them;
//   - those below which the stack may get deeper than maxUncharged.

// maxUncharged is how deep, in bytes, functions that do not charge may nest. A function that charges pays for that depth, too, whether it is used or
// not. With 8 KiB, encoding/json took 27 KB for each level of a nested value; with 512 bytes it takes 4.5 KB, at the same speed.
const maxUncharged = 512

// maxStackCharge is the most, in bytes, that an activation may charge.
const maxStackCharge = 16 << 20

// edge adds a call to the function that is being read: to another function or, for an indirect call, to a type. The numbers of types follow
// those of functions.
func (w *rewriter) edge(to int) {
	if w.seen[to] != w.current+1 {
		w.seen[to] = w.current + 1
		w.edges = append(w.edges, uint32(to))
	}
}

// calls returns the edges of a function.
func (w *rewriter) calls(f int) []uint32 {
	end := len(w.edges)
	if f+1 < len(w.bodies) {
		end = w.bodies[f+1].edges
	}
	return w.edges[w.bodies[f].edges:end]
}

// chargeStack decides how much call stack each function charges.
func (w *rewriter) chargeStack() {
	const (
		unseen = iota
		open
		done
	)
	type visit struct{ function, next int }
	state := make([]byte, len(w.bodies))
	charges := make([]bool, len(w.bodies))
	depth := make([]int, len(w.bodies)) // bytes that a function and those below it take, down to functions that charge
	var path []visit
	for root := range w.bodies {
		if state[root] != unseen {
			continue
		}
		path = append(path[:0], visit{function: root})
		for len(path) > 0 {
			v := &path[len(path)-1]
			f := v.function
			if v.next == 0 {
				state[f] = open
				charges[f] = w.bodies[f].indirect
			}
			if calls := w.calls(f); v.next < len(calls) {
				to := int(calls[v.next]) - w.imported
				v.next++
				if to < 0 || to >= len(w.bodies) {
					continue
				}
				switch state[to] {
				case unseen:
					path = append(path, visit{function: to})
				case open:
					charges[to] = true
				}
				continue
			}
			depth[f] = w.bodies[f].frame + w.deepest(f, charges, depth)
			if depth[f] > maxUncharged {
				charges[f] = true
			}
			state[f] = done
			path = path[:len(path)-1]
		}
	}
	// The depth that an indirect call may add, by type.
	indirect := map[int]int{}
	for f := range w.bodies {
		if index := f + w.imported; w.taken[index] && !charges[f] {
			t := len(w.functions) + w.canonical[w.functions[index]]
			indirect[t] = max(indirect[t], depth[f])
		}
	}
	for f := range w.bodies {
		if !charges[f] {
			continue
		}
		below := w.deepest(f, charges, depth)
		for _, to := range w.calls(f) {
			below = max(below, indirect[int(to)])
		}
		w.bodies[f].stack = min(w.bodies[f].frame+below, maxStackCharge)
	}
}

// deepest returns the depth below a function.
func (w *rewriter) deepest(f int, charges []bool, depth []int) int {
	most := 0
	for _, to := range w.calls(f) {
		if to := int(to) - w.imported; to >= 0 && to < len(w.bodies) && !charges[to] {
			most = max(most, depth[to])
		}
	}
	return most
}

// A LinearStack is the stack in a module's memory on which code made by LLVM (C, C++, Rust, Zig, TinyGo) keeps variables whose address is taken. It
// grows downwards, and nothing in WebAssembly bounds it. When it is used up, its pointer goes below its end into data, or wraps around 0 to addresses
// beyond the memory, where the next access traps like any wild one.
type LinearStack struct {
	// Pointer is the index of the stack pointer in Rewritten.Globals.
	Pointer int
	// End is the lowest address of the stack: the end of the data below it, or 0.
	End uint32
}

// redZone is how far below the pointer a function that calls no other may write: LLVM does not move the pointer for up to 128 bytes.
const redZone = 128

// Overflown reports whether the stack was used up, given its pointer and the size of the memory in bytes. A pointer above the stack proves nothing: a
// guest may have further stacks in its memory, as TinyGo has for goroutines.
func (s *LinearStack) Overflown(pointer, memory uint32) bool {
	return pointer < s.End+redZone || pointer > memory
}

// stackPointer is LLVM's name for its stack pointer.
const stackPointer = "__stack_pointer"

// A pointer is a global that may be a stack pointer: a mutable i32 whose first value is an address aligned as in LLVM's ABI.
type pointer struct {
	global int    // its index
	number int    // its index in Rewritten.Globals
	first  uint32 // its value
}

// findLinearStack finds the stack pointer: the global to which an export or the name section gives LLVM's name for it. If no global has a name, it
// is the first global, where wasm-ld puts it. In modules made by Go, the first global begins as 0.
func (w *rewriter) findLinearStack() {
	named := max(w.stackExport, w.stackName)
	if named == 0 && w.globalNames {
		return
	}
	at := slices.IndexFunc(w.pointers, func(p pointer) bool { return p.global == max(named-1, 0) })
	if at < 0 || uint64(w.pointers[at].first) > w.out.MemoryMin<<16 {
		return
	}
	top := w.pointers[at].first
	s := &LinearStack{Pointer: w.pointers[at].number}
	for _, d := range w.out.Data {
		if end := uint64(d.Offset) + uint64(len(d.Content)); end <= uint64(top) {
			s.End = max(s.End, uint32(end))
		}
	}
	w.out.LinearStack = s
}
