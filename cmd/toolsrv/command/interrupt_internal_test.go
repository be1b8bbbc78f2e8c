package command

import (
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"testing"
)

// TestHangUp makes a terminal that is closed end what runs, as Ctrl-C does.
func TestHangUp(t *testing.T) {
	if runtime.GOOS == "windows" || signal.Ignored(syscall.SIGHUP) {
		t.Skip("SIGHUP does not arrive")
	}
	ctx, stop := untilInterrupted(t.Context())
	defer stop()
	self, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = self.Signal(syscall.SIGHUP)
	}
	if err != nil {
		t.Fatal(err)
	}
	<-ctx.Done()
}
