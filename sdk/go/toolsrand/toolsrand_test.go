package toolsrand_test

import (
	"testing"

	"github.com/toolsrv/toolsrv/sdk/go/toolsrand"
)

func TestNew(t *testing.T) {
	t.Parallel()
	if a, b := toolsrand.New().Uint64(), toolsrand.New().Uint64(); a == b {
		t.Errorf("two generators begin with %d, want two numbers", a)
	}
}
