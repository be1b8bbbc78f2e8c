package script_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/script"
	"github.com/toolsrv/toolsrv/internal/testkit"
)

// TestHelperMemory has a script that takes more memory than it may. Its process is ended, and the second one may use all that the machine can spare.
// The error says how much that was.
// Proves: Files of others are not trusted
func TestHelperMemory(t *testing.T) {
	t.Parallel()
	testkit.SkipEmulated(t, "the emulator takes memory of its own")
	if testkit.Race(t) {
		t.Skip("the race detector takes more than that")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	claimed, given := int64(0), 0
	readers := script.NewReaders([]string{self, "badly", "at once"}, 256<<20, func(bytes int64) func() { claimed += bytes; return func() { given++ } })
	defer readers.Close()
	b := script.Builder{Engines: toys(t, "python"), Readers: readers}
	_, _, err = b.Build(t.Context(), dir, testkit.Put(t, dir, "hogs.py", ""), nil)
	const want = "hogs.py: reading it takes more than 176 MiB of memory, which is all that this machine or its container has"
	if _, blamed := errors.AsType[*script.Error](err); !blamed || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("got %v, want %s", err, want)
	}
	if got, err := os.ReadFile(filepath.Join(dir, "tries")); err != nil || string(got) != fmt.Sprintf("%d\n%d\n", 64<<20, 176<<20) {
		t.Errorf("the processes' limits were %q, %v", got, err)
	}
	if claimed != 176<<20 || given != 1 {
		t.Errorf("%d bytes were claimed, and given back %d times", claimed, given)
	}
}

// TestHelpersTakeTurns has more scripts than a small machine reads at a time.
// Proves: Files of others are not trusted
func TestHelpersTakeTurns(t *testing.T) {
	t.Parallel()
	dir, lock := t.TempDir(), filepath.Join(t.TempDir(), "lock")
	file := testkit.Put(t, dir, "hello.py", "")
	alone := "mkdir " + lock + " || { echo beside another >&2; exit 1; }; sleep 0.05; rmdir " + lock
	b := script.Builder{Engines: toys(t, "python"), Readers: script.NewReaders([]string{"sh", "-c", alone, "sh"}, 128<<20, nil)}
	defer b.Readers.Close()
	var all sync.WaitGroup
	for range 6 {
		all.Go(func() {
			if _, _, err := b.Build(t.Context(), dir, file, nil); err == nil || !strings.HasSuffix(err.Error(), "it did not begin") {
				t.Errorf("got %v", err)
			}
		})
	}
	all.Wait()
}

// TestHelperGoesFirst checks that, when memory runs out, the system ends a process that reads before it ends the server.
// Proves: Files of others are not trusted
func TestHelperGoesFirst(t *testing.T) {
	t.Parallel()
	dir, said := t.TempDir(), filepath.Join(t.TempDir(), "said")
	b := readBy(t, "python", 4<<30, "tell", said)
	if _, _, err := b.Build(t.Context(), dir, testkit.Put(t, dir, "hello.py", ""), nil); err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(said); err != nil || string(bytes.TrimSpace(got)) != "1000" {
		t.Errorf("its oom_score_adj is %q, %v", got, err)
	}
}

// TestHelperEndsWithParent kills a server while it waits for a helper.
// Proves: Files of others are not trusted
func TestHelperEndsWithParent(t *testing.T) {
	t.Parallel()
	testkit.SkipEmulated(t, "the emulator's own process goes on")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	parent := exec.Command(self, "parent", filepath.Join(dir, "pid"), testkit.Put(t, dir, "hello.py", ""))
	var stderr bytes.Buffer
	parent.Stderr = &stderr
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	pid := ""
	for end := time.Now().Add(time.Minute); pid == "" && time.Now().Before(end); time.Sleep(5 * time.Millisecond) {
		text, _ := os.ReadFile(filepath.Join(dir, "pid"))
		pid = string(bytes.TrimSpace(text))
	}
	_ = parent.Process.Kill()
	_ = parent.Wait()
	if pid == "" {
		t.Fatalf("no helper began: %s", stderr.String())
	}
	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		stat, err := os.ReadFile("/proc/" + pid + "/stat")
		if err != nil || bytes.Contains(stat, []byte(") Z ")) || bytes.Contains(stat, []byte(") X ")) {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("the helper goes on: %s", stat)
		}
	}
}
