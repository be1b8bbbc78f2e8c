//go:build unix

package main_test

import (
	"fmt"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// shopOf returns a directory with the tools of the tests, whose calls may take ten minutes.
func shopOf(t *testing.T) (config string) {
	t.Helper()
	dir := site(t, "[limits]\ntimeout = \"10m\"\nfuel = 0\n", map[string][]byte{"shop.wasm": guest(t, "shop", "1.0.0", guestTools...)})
	return filepath.Join(dir, "toolsrv.toml")
}

// TestMCPSignals sends signals while a call runs.
// Proves: Answers and logs show what is meant to be seen
func TestMCPSignals(t *testing.T) {
	t.Parallel()
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGHUP} {
		t.Run(sig.String(), func(t *testing.T) {
			t.Parallel()
			if signal.Ignored(sig) {
				t.Skip("SIGHUP is ignored, as under nohup, also by processes that the test starts")
			}
			a := startAgent(t, "--config", shopOf(t), "--log-level", "info")
			a.initialize()
			a.send(`{"jsonrpc":"2.0","id":100,"method":"tools/call","params":{"name":"shop-wait","arguments":%s}}`, order)
			a.waitLine("the guest's word", guestWaits)
			a.signal(sig)
			begun := time.Now()
			if code, took := a.exitCode(), time.Since(begun); code != 0 || took > time.Minute {
				t.Errorf("exit code %d after %s, want 0 long before the call's end", code, took)
			}
		})
	}
}

// TestMCPWithoutReader has a client that closes one of the server's outputs: the server goes on if the log is closed, but ends if the messages are.
// Proves: Answers and logs show what is meant to be seen
func TestMCPWithoutReader(t *testing.T) {
	t.Parallel()
	t.Run("log", func(t *testing.T) {
		t.Parallel()
		cmd := command("mcp", "--config", shopOf(t), "--log-level", "debug")
		a := runAgent(t, cmd)
		a.initialize()
		if err := a.stderr.Close(); err != nil {
			t.Fatal(err)
		}
		for i := range 200 { // each call lets the guest write a line
			if got := a.calls("shop-echo", fmt.Sprintf(`{"item":"tea","count":%d}`, i+1)); !strings.Contains(got, "structuredContent") {
				t.Fatalf("call %d: got %s", i, got)
			}
		}
		if code, _ := a.end(); code != 0 {
			t.Errorf("exit code %d, want 0", code)
		}
	})
	t.Run("messages", func(t *testing.T) {
		t.Parallel()
		a := startAgent(t, "--config", shopOf(t))
		a.initialize()
		a.mixed = true // the last line is for people
		if err := a.stdout.Close(); err != nil {
			t.Fatal(err)
		}
		go func() {
			// One request is not enough: a process that another test is just starting may have the pipe open for a moment, so that writing the
			// first answer succeeds.
			for every := time.NewTicker(50 * time.Millisecond); ; {
				_, _ = fmt.Fprintln(a.stdin, `{"jsonrpc":"2.0","id":100,"method":"ping"}`) // an error means that the process has ended
				select {
				case <-a.exited:
					every.Stop()
					return
				case <-every.C:
				}
			}
		}()
		if code := a.exitCode(); code != 1 {
			t.Errorf("exit code %d, want 1", code)
		}
		a.waitLine("what is wrong", func(line map[string]any) bool { return strings.Contains(textOf(line), "toolsrv: ") })
	})
}
