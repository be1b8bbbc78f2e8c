// Package projecttest has helpers for tests that compile a tool's source as the author's commands do.
package projecttest

import (
	"bytes"
	"testing"

	"github.com/toolsrv/toolsrv/internal/author/project"
)

// Compile returns the module of the project in a directory. If that fails, the test's error has the compiler's messages.
func Compile(t testing.TB, dir string) []byte {
	t.Helper()
	p, err := project.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	module, err := p.Compile(t.Context(), &said)
	if err != nil {
		t.Fatalf("%v\n%s", err, said.String())
	}
	return module
}
