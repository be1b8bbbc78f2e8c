package instrument

import "slices"

// How the call stack is bounded: a function that can be part of a recursion takes what an activation needs from a
// global when it is entered, and gives it back when it returns. To do so everywhere would cost too much, so those few
// charge without which there is no cycle left in the call graph, each for those that it may call in between, too:
//   - functions with an indirect call, which may lead to any function in a table;
//   - where a walk through the direct calls comes back to a function that it is still in, that function;
//   - a function below which the stack may get deeper than maxUncharged.

// maxUncharged is how deep, in bytes, calls may nest that do not charge for themselves. What charges does so for as much
// below it, used or not: with 8 KiB a nested value took encoding/json 27 KB for each level, with this 4.5 KB, at the same
// speed.
const maxUncharged = 512

// maxStackCharge is the most, in bytes, that an activation may charge.
const maxStackCharge = 16 << 20

// edge adds a call to the function that is being read: of a function, or of a type of functions, numbered behind them.
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

// chargeStack decides what each function charges for the call stack.
func (w *rewriter) chargeStack() {
	const (
		unseen = iota
		open
		done
	)
	type visit struct{ function, next int }
	state := make([]byte, len(w.bodies))
	charges := make([]bool, len(w.bodies))
	depth := make([]int, len(w.bodies)) // below and with the function, as far as nobody there charges
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
	// What an indirect call may lead to.
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

// A LinearStack is the stack that code by LLVM (C, C++, Rust, Zig, TinyGo) keeps in its memory for what it takes addresses
// of. It grows downwards, and nothing in WebAssembly bounds it: where it is used up, its pointer goes below its end, into
// data, or around 0 to addresses behind the memory, where the next access traps like any wild one.
type LinearStack struct {
	// Pointer is the index in Rewritten.Globals of the global that points to what was taken last.
	Pointer int
	// End is the address below which the stack does not go: where the data below it ends, or 0.
	End uint32
}

// redZone is how far below the pointer code reaches that calls nothing: for up to 128 bytes LLVM does not move it.
const redZone = 128

// Overflown reports whether the stack was used up, by its pointer and the size of the memory in bytes. A guest may have
// further stacks elsewhere in its memory, as TinyGo has for goroutines, so an address above the stack says nothing.
func (s *LinearStack) Overflown(pointer, memory uint32) bool {
	return pointer < s.End+redZone || pointer > memory
}

// stackPointer is what LLVM calls the global that points to its stack.
const stackPointer = "__stack_pointer"

// A pointer is a global that may be a stack pointer: mutable, i32, and first an address that is aligned as LLVM's ABI asks.
type pointer struct {
	global int    // its index
	number int    // its index in Rewritten.Globals
	first  uint32 // its value
}

// findLinearStack finds the stack pointer. It is the global that an export or the name section calls so. Where no global
// has a name it is the first one of all, which is where wasm-ld places it. What Go has in that place begins as 0.
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
