//go:build !race

package testkit

// Race reports whether the race detector is at work, which takes memory and time of its own.
const Race = false
