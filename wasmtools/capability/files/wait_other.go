//go:build !unix

package files

// noWait is of no use here: opening a file waits for nobody.
const noWait = 0
