package command

import (
	"os"
	"strings"
	"testing"
)

// TestShowWaiting checks that a terminal shows what is waited for, and that the line is cleared. What is written to the master of a pseudo-terminal
// is echoed to its reader, as if it were typed.
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
	done() // again, as a deferred call would

	done = showWaiting(terminal, "a wait of no time")
	done()
	var file strings.Builder
	showWaiting(&file, "what nobody watches")()
	if strings.Contains(string(shown), "no time") || file.Len() > 0 {
		t.Errorf("the terminal shows %q, the file %q", shown, file.String())
	}
}
