// Package enginetest has what tests share that need interpreters for scripts.
package enginetest

import (
	"errors"
	"testing"

	"github.com/toolsrv/toolsrv/internal/script/engine"
	"github.com/toolsrv/toolsrv/internal/testkit"
)

// Need skips a test where no engine for one of these languages is carried, such as "python", or compiling it takes too long.
func Need(t testing.TB, languages ...string) {
	t.Helper()
	for _, name := range languages {
		if testkit.Race && name == "python" {
			t.Skip("compiling CPython takes minutes with -race")
		}
		Open(t, name)
	}
}

// Open returns the engine for a language, and skips a test where it is not carried.
func Open(t testing.TB, name string) *engine.Engine {
	t.Helper()
	e, err := engine.Carried().Open(name)
	if errors.Is(err, engine.ErrMissing) {
		t.Skipf("there is no engine for %s: make engines builds it", name)
	}
	if err != nil {
		t.Fatal(err)
	}
	return e
}
