package command

import (
	"encoding/json"
	"errors"
	"os"
	"os/signal"
	"reflect"
	"runtime"
	"strings"
	"syscall"
	"testing"
)

// TestShowWaiting has a terminal told what is waited for, and the line taken away. What is written to the master of a
// pseudo-terminal is echoed to who reads there, as if it were typed.
func TestShowWaiting(t *testing.T) {
	t.Parallel()
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil || !isTerminal(terminal) {
		t.Skipf("needs a pseudo-terminal: %v", err)
	}
	defer terminal.Close()
	done := showWaiting(terminal, "compiling math.wasm")
	shown := make([]byte, 0, 200)
	until := func(text string) {
		for !strings.Contains(string(shown), text) {
			n, err := terminal.Read(shown[len(shown):cap(shown)])
			if err != nil || n == 0 {
				t.Fatalf("the terminal shows %q, want %q: %v", shown, text, err)
			}
			shown = shown[:len(shown)+n]
		}
	}
	until("compiling math.wasm ...")
	done()
	until("[K")

	done = showWaiting(terminal, "what takes no time")
	done()
	var file strings.Builder
	showWaiting(&file, "what nobody watches")()
	if strings.Contains(string(shown), "no time") || file.Len() > 0 {
		t.Errorf("the terminal shows %q, the file %q", shown, file.String())
	}
}

// TestEscapeJSON has JSON on a terminal be the same value, with nothing in it that a terminal obeys.
func TestEscapeJSON(t *testing.T) {
	t.Parallel()
	const text = "{\"a\":\r\n\t[\"\u009b31m\", \"\u202e\x7f\", \"\U000e0001 ü ツ 😀\", \"\\u001b\"]}\n"
	const want = `{"a":` + " \n\t" + `["\u009b31m", "\u202e\u007f", "\udb40\udc01 ü ツ 😀", "\u001b"]}` + "\n"
	got := escapeJSON([]byte(text))
	if string(got) != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	var before, after any
	if err := errors.Join(json.Unmarshal([]byte(text), &before), json.Unmarshal(got, &after)); err != nil || !reflect.DeepEqual(before, after) {
		t.Errorf("got %q, want %q, %v", after, before, err)
	}
}

// TestHangUp has a terminal that is closed end what runs, as Ctrl-C does.
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
