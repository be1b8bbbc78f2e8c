package sandbox_test

import (
	"context"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/sandboxtest"
	"github.com/toolsrv/toolsrv/internal/toolfile"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

// diskVariable names the directory in which this test mounts a small disk, when it runs again in a namespace of its own.
const diskVariable = "TOOLSRV_TEST_DISK"

// TestDiskFull fills a real disk, and makes another one read-only, under a running engine and before one starts.
// Proves: Nothing stops the server
func TestDiskFull(t *testing.T) {
	if dir := os.Getenv(diskVariable); dir != "" {
		onSmallDisk(t, dir)
		return
	}
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("needs root: in a namespace of another user the folders above belong to somebody unknown, and so no cache is used")
	}
	c := exec.Command(os.Args[0], "-test.run=^TestDiskFull$", "-test.v")
	c.Env = append(os.Environ(), diskVariable+"="+t.TempDir())
	c.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getegid(), Size: 1}},
	}
	out, err := c.CombinedOutput()
	if len(out) == 0 && err != nil || strings.Contains(string(out), "cannot mount") {
		t.Skipf("SKIPPED, and so a full disk is not tested: no mount in a namespace of our own: %v %s", err, out)
	}
	if err != nil || !strings.Contains(string(out), "PASS: TestDiskFull/read-only") {
		t.Errorf("%v\n%s", err, out)
	}
}

func onSmallDisk(t *testing.T, dir string) {
	mount := func(t *testing.T, name string, flags uintptr) string {
		t.Helper()
		at := filepath.Join(dir, name)
		if err := os.MkdirAll(at, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mount("tmpfs", at, "tmpfs", flags, "size=128k,mode=700"); err != nil {
			t.Skip("cannot mount:", err)
		}
		t.Cleanup(func() { _ = syscall.Unmount(at, syscall.MNT_DETACH) })
		return at
	}
	fill := func(t *testing.T, at string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(at, "full"), make([]byte, 1<<20), 0o600); err == nil {
			t.Fatal("a megabyte fits onto the disk")
		}
	}
	modules := variants(t, 10)
	t.Run("while it runs", func(t *testing.T) {
		var r testkit.Log
		at := mount(t, "filled", 0)
		e := sandboxtest.Engine(t, sandbox.Config{CacheDir: at, Logger: r.Logger(slog.LevelDebug)})
		if err := sandboxtest.Load(t, e, modules[0]).Compile(t.Context()); err != nil {
			t.Fatal(err)
		}
		if logged := r.String(); logged != "" {
			t.Errorf("got %s of a disk with room", logged)
		}
		fill(t, at)
		fails(t, e, &r, modules)
	})
	t.Run("before the start", func(t *testing.T) {
		var r testkit.Log
		at := mount(t, "full", 0)
		fill(t, at)
		// Unfinished files go to the directory for temporary files; without one, nothing is kept.
		fails(t, sandboxtest.Engine(t, sandbox.Config{CacheDir: at, Logger: r.Logger(slog.LevelDebug)}), &r, modules)
		t.Setenv("TMPDIR", at)
		var other testkit.Log
		fails(t, sandboxtest.Engine(t, sandbox.Config{CacheDir: at, Logger: other.Logger(slog.LevelDebug)}), &other, modules)
	})
	t.Run("read-only", func(t *testing.T) {
		at := mount(t, "readonly", 0)
		var first testkit.Log
		e, err := sandbox.New(t.Context(), sandbox.Config{Imports: toolfile.Imports(), CacheDir: at, Logger: first.Logger(slog.LevelDebug)})
		if err != nil {
			t.Fatal(err)
		}
		if err := sandboxtest.Load(t, e, modules[0]).Compile(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := e.Close(context.Background()); err != nil {
			t.Error(err)
		}
		if err := syscall.Mount("", at, "", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
			t.Skip("cannot mount:", err)
		}
		var r testkit.Log
		e = sandboxtest.Engine(t, sandbox.Config{CacheDir: at, Logger: r.Logger(slog.LevelDebug)})
		p := sandboxtest.Load(t, e, modules[0])
		if out, err := p.Tool("x", 0, limits.Limits{}).Call(t.Context(), sandbox.CallSpec{Input: []byte("[1]")}); err != nil || string(out) != "[1]" {
			t.Errorf("got %s, %v, want [1]", out, err)
		}
		if logged := r.String(); logged != "" {
			t.Errorf("code that is in a read-only cache: got %s", logged)
		}
		fails(t, e, &r, modules)
	})
}
