package memory_test

import (
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit/statetest"
	"github.com/toolsrv/toolsrv/wasmtools/state"
	"github.com/toolsrv/toolsrv/wasmtools/state/memory"
)

func TestStore(t *testing.T) {
	t.Parallel()
	statetest.Test(t, func(*testing.T) state.Store { return memory.New() })
}
