// Package testkit has what the tests of several packages share. It imports no other package, so that all can use it.
package testkit

import (
	"os"
	"testing"
)

// Emulated reports whether the tests run under qemu-user, as make test-arm64 has them: a process there has page faults
// and limits that are the emulator's, takes several times as long, and can't start another one of its own kind.
func Emulated() bool { return os.Getenv("TOOLSRV_EMULATED") != "" }

// SkipEmulated skips a test under an emulator, for the reason why.
func SkipEmulated(t testing.TB, why string) {
	t.Helper()
	if Emulated() {
		t.Skip("an emulator runs this: " + why)
	}
}
