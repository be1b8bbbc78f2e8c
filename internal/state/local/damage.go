package local

import (
	"fmt"
	"runtime"
	"runtime/debug"
)

// A fault is a panic of bbolt, which reads the file as memory and trusts what is in it. It keeps its locks.
type fault struct{ cause any }

func (f *fault) Error() string {
	if _, ok := f.cause.(runtime.Error); ok { // whose words say nothing of the file
		return ErrDamaged.Error() + " (it points to a place without data, as if it had been cut off or overwritten)"
	}
	return fmt.Sprintf("%v (reading it has failed: %v)", ErrDamaged, f.cause)
}
func (f *fault) Unwrap() error { return ErrDamaged }

// caught is deferred where the file is used, with debug.SetPanicOnFault(true) as its argument. A panic becomes an error, even
// where something is read from where nothing is, which would end the process.
func caught(err *error, before bool) {
	debug.SetPanicOnFault(before)
	if cause := recover(); cause != nil {
		*err = &fault{cause}
	}
}
