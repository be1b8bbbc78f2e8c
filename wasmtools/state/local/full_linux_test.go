package local_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"testing"

	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/wasmtools/state"
	"github.com/toolsrv/toolsrv/wasmtools/state/local"
)

// TestFullDisk fills the file system that the state is on, a small one of a process of its own, or the file to the largest size that
// the process may have. Then writes fail and reads work; when there is room again, writes work, too.
func TestFullDisk(t *testing.T) {
	t.Parallel()
	testkit.SkipEmulated(t, "it starts processes")
	for _, role := range []string{"fill tmpfs", "fill file"} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			c := child(t, role, t.TempDir())
			if role == "fill tmpfs" {
				if os.Getuid() != 0 {
					t.Skip("a user's namespace does not know root, to whom the folders above the state belong: root runs this")
				}
				c.SysProcAttr = &syscall.SysProcAttr{
					Cloneflags:  syscall.CLONE_NEWNS | syscall.CLONE_NEWUSER,
					UidMappings: []syscall.SysProcIDMap{{HostID: os.Getuid(), Size: 1}},
					GidMappings: []syscall.SysProcIDMap{{HostID: os.Getgid(), Size: 1}},
				}
			}
			out, err := c.Output()
			if err != nil && c.ProcessState == nil {
				t.Skipf("no process with file systems of its own can be started here: %v", err)
			}
			if strings.HasPrefix(string(out), "skip") {
				t.Skip(string(out))
			}
			if string(out) != "ok\n" {
				t.Errorf("got %q, %v", out, err)
			}
		})
	}
}

// fillDisk fills what is at a directory, and prints "ok", or what is wrong.
func fillDisk(role, dir string) {
	var more func() error
	if role == "fill tmpfs" {
		if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, "size=400k,mode=0700"); err != nil {
			fmt.Println("skip: no file system can be mounted here:", err)
			return
		}
		more = func() error { return syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "size=4m,mode=0700") }
	} else {
		signal.Ignore(syscall.SIGXFSZ)
		var limit syscall.Rlimit
		if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			fmt.Println("skip: the size of files can't be limited here:", err)
			return
		}
		before := limit.Cur
		limit.Cur = 400 << 10
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			fmt.Println("skip: the size of files can't be limited here:", err)
			return
		}
		more = func() error {
			limit.Cur = before
			return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit)
		}
	}
	if err := fill(dir, more); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("ok")
}

func fill(dir string, more func() error) error {
	var log bytes.Buffer
	store, err := local.Open(dir, local.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		return err
	}
	s, ctx := store.Space("a"), context.Background()
	value := func(i int) []byte { return bytes.Repeat(fmt.Append(nil, i, " "), 300) }
	kept := 0
	for ; err == nil && kept < 10_000; kept++ {
		_, err = s.Set(ctx, fmt.Sprint(kept), value(kept), state.Absent, state.SetOptions{})
	}
	kept--
	if !errors.Is(err, state.ErrUnavailable) || kept < 10 {
		return fmt.Errorf("wrote %d, and got the error %w", kept, err)
	}
	for range 20 {
		if _, err := s.Set(ctx, "large", make([]byte, 100<<10), state.Any, state.SetOptions{}); !errors.Is(err, state.ErrUnavailable) {
			return fmt.Errorf("at a full disk: got the error %w", err)
		}
	}
	check := func() error {
		for i := range kept {
			if e, ok, err := s.Get(ctx, fmt.Sprint(i), state.MaxValue); !ok || err != nil || !bytes.Equal(e.Value, value(i)) {
				return fmt.Errorf("%d has %.20q, %t, %w", i, e.Value, ok, err)
			}
		}
		return nil
	}
	if err := check(); err != nil {
		return err
	}
	if err := more(); err != nil {
		return err
	}
	if _, err := s.Set(ctx, "large", make([]byte, 100<<10), state.Any, state.SetOptions{}); err != nil {
		return fmt.Errorf("with room again: %w", err)
	}
	if err := store.Close(); err != nil {
		return err
	}
	if !strings.Contains(log.String(), "state can't be written") {
		return fmt.Errorf("logged %q", log.String())
	}
	if store, err = local.Open(dir, local.Options{}); err != nil {
		return err
	}
	s = store.Space("a")
	return errors.Join(check(), store.Close())
}
