// Package weigh predicts what it takes to compile a WebAssembly function, without compiling it.
//
// wazero's compiler can't be interrupted, and some of what it does grows with products: values that are live × blocks,
// branches to a label × the way back to where a value was defined, parameters of a block squared. So a small function can
// take hours and all of the memory. A [Scale] walks over a function's body once, as the compiler's front end does,
// keeps count of blocks, edges and values, and sums up these products. The figures were fitted to measurements on
// hostile shapes and on large modules of compilers; they are to order work and to refuse what is far too much, not to tell
// the time.
package weigh

import "time"

// A Weight is what compiling is predicted to take, of a function or of a module.
type Weight struct {
	Nanos int64 // of one processor of 2020 or later
	Bytes int64 // at most at once, with what the garbage collector has not freed yet
}

// Time is Nanos as a duration.
func (w Weight) Time() time.Duration { return time.Duration(w.Nanos) }

// A Signature is how many parameters and results a function or block type has.
type Signature struct{ Params, Results int }

// A Module is what weighing a function needs to know of its module.
type Module struct {
	Types     []Signature
	Functions []uint32 // type of each function, imported ones first
	Imported  int      // number of imported functions
	Mutable   int      // number of mutable globals
}

// What each kind of work takes. bench_test.go and docs/security.md tell how these were found.
const (
	nanosFunction = 4_000
	nanosWork     = 70 // for a quarter of an instruction
	nanosBlock    = 700
	nanosLive     = 10 // a value that is live in a block
	nanosJoin     = 300
	nanosStep     = 5 // a look at a block on the way to where a local was set
	nanosArgument = 1 // parameters × branches × parameters
	nanosDominate = 3
	nanosPred     = 1
	nanosKnown    = 15 // an address that is known to be in bounds at the end of a block

	bytesFunction = 400
	bytesWork     = 160
	bytesBlock    = 2_500
	bytesLive     = 24
	bytesJoin     = 160
	bytesKnown    = 48
)

// A Count is what was counted in a function: the products that the compiler's time and memory consist of.
type Count struct {
	Work     int64 // quarters of instructions
	Blocks   int64
	Live     int64 // values × blocks in which they are live
	Joins    int64 // values × blocks that are reached from several
	Steps    int64 // blocks that the search for a local's value passes
	Argument int64 // parameters of a block × branches to it × parameters
	Alias    int64 // reads of a local × parts of the function in which it was read before
	Dominate int64 // edges × blocks above them in the dominator tree
	Preds    int64 // squares of the branches to one block
	Known    int64 // known addresses × blocks
}

// weight is what all that takes.
func (c *Count) weight() Weight {
	return Weight{
		Nanos: nanosFunction + nanosWork*c.Work + nanosBlock*c.Blocks + nanosLive*c.Live + nanosJoin*c.Joins +
			nanosStep*c.Steps + nanosArgument*c.Argument/2 + 3*c.Alias + nanosDominate*c.Dominate + nanosPred*c.Preds + nanosKnown*c.Known,
		Bytes: bytesFunction + bytesWork*c.Work + bytesBlock*c.Blocks + bytesLive*c.Live + bytesJoin*c.Joins + bytesKnown*c.Known,
	}
}
