//go:build !race

package apart

// detector is how much writable address space the race detector takes.
const detector = 0
