package local

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// A fault is a panic inside bbolt, which reads the file as memory and trusts its content. bbolt's locks remain locked.
type fault struct{ cause any }

func (f *fault) Error() string {
	if _, ok := f.cause.(runtime.Error); ok { // the runtime error's text says nothing about the file
		return ErrDamaged.Error() + " (it points to a place without data, as if it had been cut off or overwritten)"
	}
	return fmt.Sprintf("%v (reading it failed: %v)", ErrDamaged, f.cause)
}
func (f *fault) Unwrap() error { return ErrDamaged }

// caught is deferred around each use of the file, with debug.SetPanicOnFault(true) as its argument. It turns a panic into an error. That includes
// reads of memory that the file no longer backs, which would otherwise end the process.
func caught(err *error, before bool) {
	debug.SetPanicOnFault(before)
	if cause := recover(); cause != nil {
		*err = &fault{cause}
	}
}
