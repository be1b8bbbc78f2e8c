package compile

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/testkit"
)

// TestPatience ends a process that does nothing: the system may not let it, so that is not blamed on the module, nor tried again at once.
// Proves: Compiling is bounded
func TestPatience(t *testing.T) {
	t.Parallel()
	testkit.SkipEmulated(t, "it can't start the process that compiles")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	p, err := NewPool(Config{Command: []string{self, "serve", "hangs"}})
	if err != nil {
		t.Skip(err)
	}
	defer p.Close()
	p.patience = 50 * time.Millisecond
	if _, err := p.Compile(t.TempDir(), []byte("module"), Limit{CPU: time.Millisecond}); !errors.Is(err, ErrLost) {
		t.Errorf("got %v, want %v", err, ErrLost)
	}
}
