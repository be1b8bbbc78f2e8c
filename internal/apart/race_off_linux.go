//go:build !race

package apart

// detector is what the race detector takes of addresses that it can write to.
const detector = 0
