package memory_test

import (
	"testing"

	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/state/memory"
	"github.com/toolsrv/toolsrv/internal/testkit/statetest"
)

func TestStore(t *testing.T) {
	t.Parallel()
	statetest.Test(t, func(*testing.T) state.Store { return memory.New() })
}
