package local_test

import (
	"testing"

	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/state/local"
	"github.com/toolsrv/toolsrv/internal/testkit/statetest"
)

func open(t testing.TB, dir string) *local.Store {
	t.Helper()
	s, err := local.Open(dir, local.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Proves: State is whole and apart
func TestStore(t *testing.T) {
	t.Parallel()
	statetest.Test(t, func(t *testing.T) state.Store { return open(t, t.TempDir()) })
}
