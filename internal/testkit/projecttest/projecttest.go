// Package projecttest is what tests share that compile a tool's source as the author's commands do.
package projecttest

import (
	"bytes"
	"testing"

	"github.com/toolsrv/toolsrv/internal/author/project"
)

// Compile returns the module of the project in a directory. What the compiler says is in the error of the test if it fails.
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
