// Package testkit has helpers for the tests of several packages. It imports no other package, so that all can use it.
package testkit

import (
	"os"
	"testing"
)

// Emulated reports whether the tests run under qemu-user, as with make test-arm64: there, page faults and process limits are those of the
// emulator. Tests take several times as long, and can't start other programs of their own architecture.
func Emulated() bool { return os.Getenv("TOOLSRV_EMULATED") != "" }

// SkipEmulated skips a test under an emulator; why is the reason.
func SkipEmulated(t testing.TB, why string) {
	t.Helper()
	if Emulated() {
		t.Skip("an emulator runs this: " + why)
	}
}
