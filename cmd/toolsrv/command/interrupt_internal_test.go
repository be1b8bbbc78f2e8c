package command

import (
	"os"
	"os/signal"
	"runtime"
	"syscall"
	"testing"
)

// TestHangUp checks that closing the terminal ends a running command, as Ctrl-C does.
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
