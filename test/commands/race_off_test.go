//go:build !race

package commands_test

// raced tells that the race detector watches. It makes compiling a Go module take 15 s instead of 1, and the host has
// tests of its own for it.
const raced = false
