//go:build !unix

package files

// noWait does nothing here: opening a file never waits.
const noWait = 0
