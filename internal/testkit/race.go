package testkit

import "testing"

// Race reports whether the race detector is on, which takes memory and time of its own. A test that calls Race may check less with the detector:
// make race notes such tests, as it notes skipped ones, so that they also run without the detector.
func Race(t testing.TB) bool {
	t.Helper()
	if race {
		t.Attr("race", "less")
	}
	return race
}

// RaceFlags are the flags with which the go command builds a program that is like this one.
func RaceFlags() []string {
	if race {
		return []string{"-race"}
	}
	return nil
}
