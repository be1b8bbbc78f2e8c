//go:build race

package apart

const detector = 1 << 30
