package testkit

import (
	"strings"
	"testing"
)

func TestLeaked(t *testing.T) {
	t.Parallel()
	begun, stop, stopped := make(chan struct{}), make(chan struct{}), make(chan struct{})
	go outlive(begun, stop, stopped)
	<-begun
	if got := stacksWith([]string{"nothing has this word", "testkit.outlive"}); !strings.Contains(got, "testkit.outlive") {
		t.Errorf("got %q, want the goroutine's stack", got)
	}
	close(stop)
	<-stopped
	if got := leaked([]string{"testkit.outlive("}); got != "" {
		t.Errorf("got %q, want nothing: the goroutine has ended", got)
	}
}

func outlive(begun, stop, stopped chan struct{}) {
	defer close(stopped)
	close(begun)
	<-stop
}
