package compile

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/testkit"
)

// TestPatience ends a process that makes no progress. The system may be the reason, so the module is not blamed, nor tried again at once.
// Proves: Compiling is bounded
func TestPatience(t *testing.T) {
	t.Parallel()
	testkit.SkipEmulated(t, "the test can't start the process that compiles")
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
