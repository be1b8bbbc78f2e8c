//go:build !unix

package server

import "math"

// descriptors returns how many files and connections the process may have open: this system has no limit.
func descriptors() int64 { return math.MaxInt32 }
