package instrument

import (
	"fmt"
	"time"

	"github.com/toolsrv/toolsrv/runtime/instrument/internal/weigh"
	"github.com/toolsrv/toolsrv/runtime/wasmbin"
)

// What compiling may take, as package weigh predicts it. Nothing can stop wazero's compiler, and a function of 28 KB can
// make it take a gigabyte. No hostile function within these bounds has taken more than 5 s or 512 MB. A module of 20 MB that
// is not hostile at all takes 16 s and 350 MB, so the bounds grow with the code.
const (
	maxNanos      = 3_000_000_000 // of a function
	maxBytes      = 384 << 20
	maxBytesTotal = 512 << 20 // of the most expensive function, with bytesCode for each byte of code
	bytesCode     = 14
	maxNanosBase  = 3_500_000_000 // of all functions together, and for each byte of code
	maxNanosByte  = 1_200
)

// wazero compiles a way into functions of each type, used or not, and does so again whenever it loads code. No compiler's module has a
// fiftieth of the types that may take so long.
const (
	maxNanosTypes = 500_000_000
	nanosType     = 10_000
	nanosValue    = 2_000 // of each parameter and result
	bytesType     = 1_000
	bytesValue    = 150
)

// weighTypes adds what it takes to compile the ways into functions, and refuses the module if that is too much.
func (w *rewriter) weighTypes() error {
	types, values := int64(len(w.types)), int64(0)
	for _, t := range w.types {
		values += int64(len(t.Params) + len(t.Results))
	}
	w.out.Weight = weigh.Weight{Nanos: types*nanosType + values*nanosValue, Bytes: types*bytesType + values*bytesValue}
	if w.out.Weight.Nanos > maxNanosTypes {
		return fmt.Errorf("wasm: type section: compiling the module's %d types with %d parameters and results would take too much, about %s: leave out those that nothing uses",
			types, values, w.out.Weight.Time().Round(100*time.Millisecond))
	}
	return nil
}

// scale returns a scale for the functions as they are written. own are the types of the added ones.
func (w *rewriter) scale(own []uint32) *weigh.Scale {
	m := &weigh.Module{Types: w.signatures(), Imported: w.imported + added, Globals: w.globals + addedGlobals + len(w.refOrder), Mutable: w.mutable + addedGlobals}
	m.Types = append(m.Types, weigh.Signature{}, weigh.Signature{Params: 1, Results: 1}, weigh.Signature{Params: 1}, weigh.Signature{Params: 3})
	m.Functions = append(m.Functions, w.functions[:w.imported]...)
	for range added {
		m.Functions = append(m.Functions, w.addedType(typeMap))
	}
	m.Functions = append(append(m.Functions, w.functions[w.imported:]...), own...)
	w.compiled = m
	return weigh.NewScale(m)
}

// signatures returns the types of functions and blocks.
func (w *rewriter) signatures() []weigh.Signature {
	all := make([]weigh.Signature, 0, len(w.types)+addedTypes)
	for _, t := range w.types {
		all = append(all, weigh.Signature{Params: len(t.Params), Results: len(t.Results)})
	}
	return all
}

// weigh adds what it takes to compile a function whose body has been written, and refuses the function if that is too much.
func (w *rewriter) weigh(s *weigh.Scale, r *wasmbin.Reader, f *function, body []byte) {
	if len(w.compiled.Types) < len(w.types)+addedTypes+len(w.blockAt) { // the block that the function's body became
		w.compiled.Types = append(w.compiled.Types, weigh.Signature{Results: len(f.results)})
	}
	t := w.types[w.functions[w.imported+w.current]]
	count, err := s.Count(weigh.Signature{Params: len(t.Params), Results: len(t.Results)}, body)
	if err != nil {
		r.Fail(f.start, "weigh what was written: %w", err)
		return
	}
	weight := count.Weight()
	if alone := weight.Grow(); alone.Nanos > maxNanos || alone.Bytes > maxBytes {
		r.Fail(f.start, "compiling the function would take too much, about %s and %d MB, because %s: split it, or optimise it with the compiler or wasm-opt",
			alone.Time().Round(100*time.Millisecond), alone.Bytes>>20, count.Cause(alone.Bytes/maxBytes > alone.Nanos/maxNanos))
	}
	w.out.Weight = w.out.Weight.Add(weight)
	if w.out.Weight.Nanos > maxNanosBase+maxNanosByte*maxCode { // whatever comes
		r.Fail(f.start, "compiling the module's %d functions would take too much, more than %s: split the module, or optimise it with the compiler or wasm-opt",
			len(w.bodies), w.out.Weight.Time().Round(100*time.Millisecond))
	}
}

// total finishes the weight of a module with so many bytes of code, and refuses the module if it is too much.
func (w *rewriter) total(r *wasmbin.Reader, code int) {
	w.out.Weight = w.out.Weight.Grow()
	w.out.Weight.Bytes += bytesCode * int64(code)
	if w.out.Weight.Nanos > maxNanosBase+maxNanosByte*int64(code) || w.out.Weight.Bytes > maxBytesTotal {
		r.Fail(r.End, "compiling the module's %d functions would take too much, about %s and %d MB: split the module, or optimise it with the compiler or wasm-opt",
			len(w.bodies), w.out.Weight.Time().Round(100*time.Millisecond), w.out.Weight.Bytes>>20)
	}
}
