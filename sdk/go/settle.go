//go:build wasip1 && !tinygo

package toolsrv

import "runtime"

// settle collects what initialisation left behind.
func settle() { runtime.GC() }
