package apart_test

import (
	"context"
	"errors"
	"os"
	"runtime/debug"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/apart"
	"github.com/toolsrv/toolsrv/internal/testkit"
)

// bounds are the limits of a process in these tests, as the process itself reports them.
type bounds struct {
	Process   int
	Data, CPU uint64
	Garbage   int // percent
}

// serve answers with the process's limits, and hangs if the request says so.
func serve(args []string) error {
	return apart.Serve(args, os.Stdin, os.Stdout, apart.Bounds{}, func(hang *bool, _ []byte, _ apart.Limit) *bounds {
		if *hang {
			select {}
		}
		var data, cpu syscall.Rlimit
		_ = syscall.Getrlimit(syscall.RLIMIT_DATA, &data)
		_ = syscall.Getrlimit(syscall.RLIMIT_CPU, &cpu)
		return &bounds{os.Getpid(), data.Cur, cpu.Cur, debug.SetGCPercent(100)}
	})
}

// TestPool checks that one process has separate limits for each piece of work, that an idle process ends, and that a piece of work ends when nobody
// waits for it.
// Proves: Files of others are not trusted
func TestPool(t *testing.T) {
	t.Parallel()
	testkit.SkipEmulated(t, "the emulator takes memory of its own")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	const each = 1 << 30
	beside := uint64(192 << 20)
	if testkit.Race(t) { // the race detector takes address space of its own
		beside += 1 << 30
	}
	p := apart.NewPool(apart.Config{Name: "a process", Command: []string{self, "serve"}, Each: each, Kept: 1, Idle: time.Second})
	defer p.Close()
	do := func(ctx context.Context, most apart.Limit, hang bool) (b bounds, err error) {
		_, err = p.Do(ctx, &apart.Work{Request: hang, Reply: &b, Most: 1 << 10, Limit: most})
		return b, err
	}
	process := 0
	for _, most := range []apart.Limit{{5 * time.Second, 64 << 20, time.Minute}, {50 * time.Second, each, time.Minute}, {5 * time.Second, 64 << 20, time.Minute}} {
		b, err := do(t.Context(), most, false)
		if err != nil {
			t.Fatal(err)
		}
		if process == 0 {
			process = b.Process
		}
		if seconds := uint64(2 * most.CPU / time.Second); b.Process != process || b.Data != uint64(most.Bytes)+beside || b.CPU < seconds || b.CPU > seconds+10 || b.Garbage != 100 {
			t.Errorf("got %+v, want the bounds %+v in the process %d", b, most, process)
		}
	}
	for end := time.Now().Add(testkit.Patience); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat("/proc/" + strconv.Itoa(process)); err != nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal("an unused process does not end")
		}
	}
	ctx, cancel := context.WithTimeoutCause(t.Context(), 50*time.Millisecond, errors.New("enough"))
	defer cancel()
	if _, err := do(ctx, apart.Limit{CPU: time.Second, Bytes: each, Time: time.Minute}, true); err == nil || err.Error() != "enough" {
		t.Errorf("got %v, want the reason why nobody waits any more", err)
	}
	_, err = do(t.Context(), apart.Limit{CPU: time.Second, Bytes: each, Time: 50 * time.Millisecond}, true)
	if lost, ok := errors.AsType[*apart.LostError](err); !ok || !lost.Stuck {
		t.Errorf("got %v, want an error because it hangs", err)
	}
	p.Close()
	if _, err := do(t.Context(), apart.Limit{}, false); !errors.Is(err, apart.ErrClosed) {
		t.Errorf("got %v, want %v", err, apart.ErrClosed)
	}
}
