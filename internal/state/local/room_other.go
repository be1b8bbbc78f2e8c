//go:build !linux

package local

import "os"

// allocate makes the disk reserve space for an unused part of a file.
func allocate(file *os.File, from, length int64) error { return fillZeros(file, from, length) }
