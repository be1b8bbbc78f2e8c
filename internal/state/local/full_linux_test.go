package local_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/state/local"
	"github.com/toolsrv/toolsrv/internal/testkit"
)

// TestFullDisk runs in a process of its own. It fills a small file system with the state's file, or lets that file reach the largest size that the
// process may write. Then writes fail and reads work. Once there is room again, writes work, too. Deletions always work, and make room. A state on a
// read-only file system is refused with that reason, and stays as it is.
// Proves: State is whole and apart
func TestFullDisk(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: not with -short")
	}
	t.Parallel()
	testkit.SkipEmulated(t, "it starts processes")
	for _, role := range []string{"fill tmpfs", "fill file", "delete tmpfs", "delete file", "protect tmpfs"} {
		t.Run(role, func(t *testing.T) {
			t.Parallel()
			c := child(t, role, t.TempDir())
			if strings.HasSuffix(role, "tmpfs") {
				if os.Getuid() != 0 {
					t.Skip("the folders above the state belong to root, which does not exist in a user's namespace: run this test as root")
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

// fillDisk fills the file system of a directory, and prints "ok" or what is wrong.
func fillDisk(role, dir string) {
	var more func() error
	what, on, _ := strings.Cut(role, " ")
	size := 400 << 10
	if what == "delete" {
		size = 48 << 20
	}
	if on == "tmpfs" {
		if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%d,mode=0700", size)); err != nil {
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
		limit.Cur = uint64(size)
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			fmt.Println("skip: the size of files can't be limited here:", err)
			return
		}
		more = func() error {
			limit.Cur = before
			return syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit)
		}
	}
	test := func() error { return fill(dir, more) }
	switch what {
	case "delete":
		test = func() error { return deleteAll(dir) }
	case "protect":
		test = func() error { return protect(dir) }
	}
	if err := test(); err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println("ok")
}

// protect makes the file system of a directory read-only.
func protect(dir string) error {
	store, err := local.Open(dir, local.Options{})
	if err != nil {
		return err
	}
	_, err = store.Space("a").Set(context.Background(), "key", []byte("value"), state.Any, state.SetOptions{})
	if err := errors.Join(err, store.Close()); err != nil {
		return err
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, "mode=0700"); err != nil {
		return err
	}
	if _, err := local.Open(dir, local.Options{}); err == nil || !strings.Contains(err.Error(), "read-only file system") || !strings.Contains(err.Error(), dir) {
		return fmt.Errorf("got %w, want an error that says the file system is read-only", err)
	}
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, "mode=0700"); err != nil {
		return err
	}
	store, err = local.Open(dir, local.Options{})
	if err != nil {
		return err
	}
	e, _, err := store.Space("a").Get(context.Background(), "key", 100)
	if string(e.Value) != "value" {
		err = errors.Join(err, fmt.Errorf("got %q", e.Value))
	}
	return errors.Join(err, store.Close())
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
	for began := time.Now(); ; { // writes were refused for a moment
		if _, err := s.Set(ctx, "large", make([]byte, 100<<10), state.Any, state.SetOptions{}); err == nil {
			break
		} else if time.Since(began) > hangs {
			return fmt.Errorf("with room again: %w", err)
		}
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

// deleteAll fills a disk with large values, while another space sets small ones. Then it deletes the large ones one by one, and fills the disk again.
func deleteAll(dir string) error {
	store, err := local.Open(dir, local.Options{})
	if err != nil {
		return err
	}
	large, small, ctx := store.Space("large"), store.Space("small"), context.Background()
	if _, err := small.Set(ctx, "k", nil, state.Any, state.SetOptions{}); err != nil {
		return err
	}
	kept := 0
	for round := range 2 {
		before := kept
		err = nil
		for kept = 0; err == nil; kept++ {
			_, err = large.Set(ctx, fmt.Sprint(kept), make([]byte, 700<<10), state.Absent, state.SetOptions{})
		}
		if kept--; !errors.Is(err, state.ErrUnavailable) || kept < 20 || round > 0 && kept < before/2 {
			return fmt.Errorf("round %d: set %d values, %d before, and got the error %w", round, kept, before, err)
		}
		stop, stopped := make(chan struct{}), make(chan struct{})
		fits := 0
		alone, err := pace(small)
		if err != nil {
			return fmt.Errorf("a neighbour of a full space: %w", err)
		}
		go func() {
			defer close(stopped)
			for {
				select {
				case <-stop:
					return
				default:
					if _, err := large.Set(ctx, "more", make([]byte, state.MaxValue), state.Any, state.SetOptions{}); err == nil {
						fits++
					}
				}
			}
		}()
		beside, err := pace(small)
		close(stop)
		<-stopped
		if err != nil {
			return fmt.Errorf("set in a space beside one that fills the disk: %w", err)
		}
		// Both times include waits for the disk. A write to one space must not also retry the refused writes of another space.
		if fits == 0 && beside > 10*alone+hangs/100 {
			return fmt.Errorf("a neighbour's set takes %v, and %v while another space's sets fail", alone, beside)
		}
		for i := range kept {
			if deleted, err := large.Delete(ctx, fmt.Sprint(i), state.Any); err != nil || !deleted {
				return fmt.Errorf("round %d: of %d large values, delete %d: %t, %w", round, kept, i, deleted, err)
			}
		}
		_, _ = large.Delete(ctx, "more", state.Any)
	}
	return store.Close()
}

// pace returns the median time of setting a few bytes.
func pace(s state.Space) (time.Duration, error) {
	var took []time.Duration
	for i := range 100 {
		began := time.Now()
		if _, err := s.Set(context.Background(), "k", fmt.Append(nil, i), state.Any, state.SetOptions{}); err != nil {
			return 0, fmt.Errorf("set %d: %w", i, err)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return took[len(took)/2], nil
}
