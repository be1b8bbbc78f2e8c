package engines_test

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/script/engine"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
)

// lines is a handler that keeps log lines.
type lines struct {
	mu       sync.Mutex
	messages []string
}

func (l *lines) Enabled(context.Context, slog.Level) bool { return true }
func (l *lines) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *lines) WithGroup(string) slog.Handler            { return l }
func (l *lines) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.messages = append(l.messages, r.Message)
	return nil
}

// TestConsole compares the log lines of console with the output of Node's, which is set to print each value on one line.
func TestConsole(t *testing.T) {
	t.Parallel()
	const dir = webTests + "/console"
	source := string(testkit.Read(t, dir, "values.js"))
	want := string(testkit.Read(t, dir, "values.txt"))
	t.Run("in Node", func(t *testing.T) {
		t.Parallel()
		testkit.NeedBuild(t, "node")
		const around = "import { Console } from 'node:console';\n" +
			"globalThis.console = new Console({ stdout: process.stdout, stderr: process.stdout, inspectOptions: { compact: true, breakLength: Infinity } });\n"
		cmd := exec.CommandContext(t.Context(), "node", "--input-type=module", "-")
		cmd.Stdin = strings.NewReader(around + source)
		printed, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		if *update {
			if err := os.WriteFile(dir+"/values.txt", printed, 0o600); err != nil {
				t.Fatal(err)
			}
		} else if string(printed) != want {
			t.Errorf("got\n%s", printed)
		}
	})
	t.Run("in the engine", func(t *testing.T) {
		t.Parallel()
		written := &lines{}
		h := host{engine: sandboxtest.Engine(t, sandbox.Config{Paranoid: true, CacheDir: sandboxtest.CodeDir(), Logger: slog.New(written)})}
		s := h.load(t, need(t, "javascript"), engine.File{Name: "test.js", Data: []byte("import { tool } from 'toolsrv';\nexport const test = tool({ description: 'Logs.', run() {\n" + source + "\nreturn 1;\n} });\n")})
		if err := s.call(t, new(int)); err != nil {
			t.Fatal(err)
		}
		written.mu.Lock()
		defer written.mu.Unlock()
		got := strings.Split(strings.Join(written.messages, "\n"), "\n")
		expected := strings.Split(strings.TrimSuffix(want, "\n"), "\n")
		for i := range max(len(got), len(expected)) {
			var g, w string
			if i < len(got) {
				g = got[i]
			}
			if i < len(expected) {
				w = expected[i]
			}
			if g != w {
				t.Errorf("line %d:\n got %s\nwant %s", i, g, w)
			}
		}
	})
}
