package testkit_test

import (
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
)

func TestFixture(t *testing.T) {
	t.Parallel()
	if module := testkit.Fixture(t, "wat/good/echo"); !strings.HasPrefix(string(module), "\x00asm") {
		t.Errorf("got %.20q, want a module", module)
	}
	dir := t.TempDir()
	if path := testkit.Put(t, dir, "a/b.txt", "text"); string(testkit.Read(t, path)) != "text" {
		t.Errorf("%s has %q, want what was put there", path, testkit.Read(t, path))
	}
}

func TestLog(t *testing.T) {
	t.Parallel()
	var log testkit.Log
	logger := log.Logger(slog.LevelInfo)
	var writers sync.WaitGroup
	for range 2 {
		writers.Go(func() {
			for range 100 {
				logger.Info("line", "of", "many")
				logger.Debug("not shown")
			}
			logger.Info("done")
		})
	}
	log.Wait(t, "msg=done")
	log.WaitFor(t, "both", func(string) bool { return log.Count("msg=done", "level=INFO") == 2 })
	writers.Wait()
	if n := log.Count("line", "many"); n != 200 {
		t.Errorf("got %d lines, want 200", n)
	}
	if log.Count("not shown") != 0 {
		t.Error("the log has lines below its level")
	}
	ready := make(chan struct{})
	go close(ready)
	testkit.Until(t, "the other goroutine", func() bool {
		select {
		case <-ready:
			return true
		default:
			return false
		}
	})
}
