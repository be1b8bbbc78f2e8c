// Package weigh predicts what it takes to compile a WebAssembly function, without compiling it.
//
// wazero's compiler can't be interrupted, and some of its work grows with products: live values × blocks, branches to a label
// × the way back to where a value was defined, the square of a block's parameters. So a small function can take hours and all
// of the memory. A [Scale] walks over a function's body once, as the front end of the compiler does, counts blocks, edges and
// values, and sums up these products. The figures were fitted to measurements of hostile functions and of large modules by
// compilers. They are meant to order work, and to refuse what is too much.
package weigh

import "time"

// A Weight is what compiling a function or a module is predicted to take.
type Weight struct {
	Nanos int64 // on one processor of 2020 or later
	Bytes int64 // the most at a time, with what the garbage collector has not freed yet
}

// Time is Nanos as a duration.
func (w Weight) Time() time.Duration { return time.Duration(w.Nanos) }

// A Signature is how many parameters and results a function or block type has.
type Signature struct{ Params, Results int }

// A Module is what has to be known of a module to weigh its functions.
type Module struct {
	Types     []Signature
	Functions []uint32 // type of each function, imported ones first
	Imported  int      // number of imported functions
	Globals   int      // number of globals, which the compiler declares anew for each function
	Mutable   int      // how many of them are mutable
}

// A Count holds the products that the compiler's time and memory for a function consist of. They are floating-point numbers
// because some exceed any integer.
type Count struct {
	Work     float64 // quarters of the compiler's own instructions
	Reloads  float64 // calls × globals that are read again after them
	Blocks   float64
	Live     float64 // values × blocks in which they are live
	Above    float64 // values that are live where a loop begins × blocks that are reached through it
	Joins    float64 // locals × blocks that are reached from several
	Moves    float64 // locals that come from several places × these places
	Steps    float64 // blocks that the search for a local's value passes
	Argument float64 // parameters of a block × branches to it × parameters
	Alias    float64 // reads of a local × parts of the function in which it was read before
	Dominate float64 // edges × blocks above them in the dominator tree
	Preds    float64 // squares of the branches to one block
	Known    float64 // addresses that are known to be in bounds × blocks
}

// The cost of one of each. The figures were fitted to measurements of 180 kinds of hostile functions, so that most take less than is
// predicted and none takes more than twice as much.
var (
	nanos = Count{Work: 80, Reloads: 160, Blocks: 1500, Live: 32, Above: 25, Joins: 60, Moves: 290, Steps: 22, Argument: 0.65, Alias: 3, Dominate: 18, Preds: 0.5, Known: 150}
	bytes = Count{Work: 125, Reloads: 250, Blocks: 500, Live: 6.5, Above: 7, Joins: 75, Moves: 300, Known: 100}
)

const (
	nanosFunction = 6_000
	bytesFunction = 1_000
	// nanosGrowth is for each byte that no earlier function needed: the operating system provides it, and the garbage
	// collector looks at it. The compiler keeps its memory for the next function.
	nanosGrowth = 1.8
)

// times returns the sum of all counts, each multiplied by its figure in by.
func (c *Count) times(by *Count) float64 {
	return c.Work*by.Work + c.Reloads*by.Reloads + c.Blocks*by.Blocks + c.Live*by.Live + c.Above*by.Above + c.Joins*by.Joins + c.Moves*by.Moves + c.Steps*by.Steps +
		c.Argument*by.Argument + c.Alias*by.Alias + c.Dominate*by.Dominate + c.Preds*by.Preds + c.Known*by.Known
}

// Weight returns what the function takes if the memory is there already.
func (c *Count) Weight() Weight {
	const most = 1 << 60
	return Weight{
		Nanos: int64(min(nanosFunction+c.times(&nanos), most)),
		Bytes: int64(min(bytesFunction+c.times(&bytes), most)),
	}
}

// Grow returns w with the time that it takes to get Bytes of memory first.
func (w Weight) Grow() Weight {
	w.Nanos += int64(nanosGrowth * float64(w.Bytes))
	return w
}

// Add returns what two functions take if they are compiled one after the other.
func (w Weight) Add(other Weight) Weight {
	const most = 1 << 60
	return Weight{Nanos: min(w.Nanos+other.Nanos, most), Bytes: max(w.Bytes, other.Bytes)}
}

// Cause says in words what most of the time goes into, or most of the bytes.
func (c *Count) Cause(ofBytes bool) string {
	by := &nanos
	if ofBytes {
		by = &bytes
	}
	most, cause := 0.0, ""
	for _, part := range [...]struct {
		takes float64
		cause string
	}{
		{c.Work * by.Work, "it is very long"},
		{c.Reloads * by.Reloads, "many globals are read again after many calls"},
		{c.Blocks*by.Blocks + c.Dominate*by.Dominate + c.Preds*by.Preds, "it has very many branches"},
		{c.Live*by.Live + c.Above*by.Above, "many values are kept across many branches"},
		{c.Joins*by.Joins + c.Moves*by.Moves + c.Argument*by.Argument, "many locals are set on many branches"},
		{c.Steps*by.Steps + c.Alias*by.Alias, "many locals are read many branches after they are set"},
		{c.Known * by.Known, "many addresses are used across many branches"},
	} {
		if part.takes > most {
			most, cause = part.takes, part.cause
		}
	}
	return cause
}
