// Package enginetest has helpers for tests that need the engines of scripts.
package enginetest

import (
	"slices"
	"testing"

	"github.com/toolsrv/toolsrv/internal/script/engine"
	"github.com/toolsrv/toolsrv/internal/testkit"
)

// Need skips a test that needs the engine of one of these languages, such as "python", if compiling it takes too long.
func Need(t testing.TB, languages ...string) {
	t.Helper()
	if slices.Contains(languages, "python") && testkit.Race(t) {
		t.Skip("compiling CPython takes minutes with -race")
	}
}

// Open returns the engine for a language.
func Open(t testing.TB, name string) *engine.Engine {
	t.Helper()
	e, err := engine.Carried().Open(name)
	if err != nil {
		t.Fatal(err)
	}
	return e
}
