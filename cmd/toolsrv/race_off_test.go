//go:build !race

package main_test

// raceEnabled has the binary under test built with the race detector, too.
const raceEnabled = false
