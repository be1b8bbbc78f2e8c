// Package weigh predicts what it takes to compile a WebAssembly function, without compiling it, and how much of the stack a call of it takes.
//
// wazero's compiler can't be interrupted, and some of its work grows with products: live values × blocks, branches to a label × the distance back to
// where a value was defined, the square of a block's parameters. So a small function can take hours and all of the memory. A [Scale] walks over a
// function's body once, counts blocks, paths between them and values, and sums up these products or their upper bounds. The figures were fitted to
// measurements of hostile functions and of large modules that compilers made. They order work and bound what a compiling process may take. If there
// is no such process, they decide what is refused.
package weigh

import "time"

// A Weight is what compiling a function or a module is predicted to take.
type Weight struct {
	Nanos int64 // on one processor of 2020 or later
	Bytes int64 // the most at a time, including what the garbage collector has not freed yet
}

// Time is Nanos as a duration.
func (w Weight) Time() time.Duration { return time.Duration(w.Nanos) }

// A Signature is how many parameters and results a function or block type has.
type Signature struct{ Params, Results int }

// A Module is what must be known of a module to weigh its functions.
type Module struct {
	Types     []Signature
	Functions []uint32 // type of each function, imported ones first
	Imported  int      // number of imported functions
	Globals   int      // number of globals, which the compiler declares anew for each function
	Mutable   int      // how many of them are mutable
}

// What the compiler's time and memory for a function consist of.
const (
	Work     = iota // quarters of the compiler's own instructions
	Reloads         // calls × globals that are read again after them
	Blocks          // basic ones, and those that the compiler puts on paths between them
	Dominate        // paths between blocks × blocks above them in the dominator tree
	Live            // values × blocks in which they are live
	Above           // values × heads of the loops through which a block is reached
	Joins           // locals × blocks that are reached from several others
	Moves           // locals that come from several places × those places
	Argument        // parameters of a block × paths to it × parameters, and more if there are many parameters
	Preds           // squares of the number of paths to one block
	Steps           // blocks that the search for a local's value passes
	Known           // addresses that are known to be in bounds × blocks
	products
)

// A Count holds how many there are of each kind. They are floating-point numbers because some exceed any integer.
type Count [products]float64

// costs holds what one of each kind takes. The figures were fitted to measurements of 180 kinds of hostile functions, so that most take less than is
// predicted and none takes more than twice as much.
var costs = [products]struct {
	nanos, bytes float64
	cause        string
}{
	Work:     {80, 125, "it is very long"},
	Reloads:  {160, 250, "many globals are read again after many calls"},
	Blocks:   {1500, 500, "it has very many branches"},
	Dominate: {18, 0, "it has very many branches"},
	Live:     {32, 6.5, "many values are kept across many branches"},
	Above:    {25, 7, "many values are kept across many branches"},
	Joins:    {60, 75, "many locals are set on many branches"},
	Moves:    {290, 300, "many locals are set on many branches"},
	Argument: {0.65, 0, "many locals are set on many branches"},
	Preds:    {0.5, 0, "it has very many branches"},
	Steps:    {22, 0, "many locals are read many branches after they are set"},
	Known:    {150, 100, "many addresses are used across many branches"},
}

const (
	nanosFunction = 6_000
	bytesFunction = 1_000
	// nanosGrowth is the time for each byte that no earlier function needed: the operating system provides it, and the garbage collector looks at it.
	// The compiler keeps its memory for the next function.
	nanosGrowth = 1.8
	most        = 1 << 60
)

// Weight returns what the function takes if the compiler already has the memory.
func (c *Count) Weight() Weight {
	nanos, bytes := float64(nanosFunction), float64(bytesFunction)
	for i, cost := range costs {
		nanos += c[i] * cost.nanos
		bytes += c[i] * cost.bytes
	}
	return Weight{Nanos: int64(min(nanos, most)), Bytes: int64(min(bytes, most))}
}

// Grow returns w with the time that it takes to get Bytes of memory first.
func (w Weight) Grow() Weight {
	w.Nanos += int64(nanosGrowth * float64(w.Bytes))
	return w
}

// Add returns what two functions take if they are compiled one after the other.
func (w Weight) Add(other Weight) Weight {
	return Weight{Nanos: min(w.Nanos+other.Nanos, most), Bytes: max(w.Bytes, other.Bytes)}
}

// Cause says in words what most of the time goes into, or most of the bytes.
func (c *Count) Cause(ofBytes bool) (cause string) {
	takes := map[string]float64{}
	for i, cost := range costs {
		each := cost.nanos
		if ofBytes {
			each = cost.bytes
		}
		if takes[cost.cause] += c[i] * each; takes[cost.cause] > takes[cause] {
			cause = cost.cause
		}
	}
	return cause
}
