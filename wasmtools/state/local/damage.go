package local

import (
	"fmt"
	"runtime/debug"
)

// caught is deferred where the file is read, with debug.SetPanicOnFault(true) as its argument: bbolt reads the file as memory, and
// trusts what is in it. So a damaged page may have it panic, or read from where nothing is, which would end the process.
func caught(err *error, before bool) {
	debug.SetPanicOnFault(before)
	if cause := recover(); cause != nil {
		*err = fmt.Errorf("%w: %v", ErrDamaged, cause)
	}
}
