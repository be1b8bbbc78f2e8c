package testkit

import "testing"

// Race reports whether the race detector is at work, which takes memory and time of its own. Who asks shows less where it is: make race notes
// that this test did, as it notes those that are skipped, so that they run without it, too.
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
