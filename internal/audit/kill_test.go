package audit_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/audit"
	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/state/local"
	"github.com/toolsrv/toolsrv/internal/testkit"
)

// childDir is the environment variable that makes the test's program make changes forever, in the directory that it names.
const childDir = "TOOLSRV_AUDIT_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		changeForEver(dir)
		return
	}
	os.Exit(m.Run())
}

// killMost is how many entries the killed processes keep: a few, so that some are dropped.
const killMost = 50

func opened(dir string) (*local.Store, *audit.Log, error) {
	store, err := local.Open(dir, local.Options{Forms: map[string]byte{audit.Space: audit.Form}})
	if err != nil {
		return nil, nil, err
	}
	o := in(store)
	o.Most = killMost
	o.Strict = func() bool { return true }
	return store, audit.New(o), nil
}

// switchOf returns the key of a caller's switch, which the caller sets to the next number each time.
func switchOf(caller int) string { return fmt.Sprint("switch/", caller) }

const killCallers = 4

// changeForEver lets callers make changes, each of its own switch, and prints the confirmed ones.
func changeForEver(dir string) {
	store, l, err := opened(dir)
	if err != nil {
		fmt.Println("failed:", err)
		return
	}
	s, ctx := store.Space("switches"), context.Background()
	var callers sync.WaitGroup
	for caller := range killCallers {
		callers.Go(func() {
			n := 0
			if e, ok, err := s.Get(ctx, switchOf(caller), 100); err != nil {
				fmt.Println("failed:", err)
			} else if ok {
				fmt.Sscan(string(e.Value), &n)
			}
			for n++; ; n++ {
				value := fmt.Append(nil, n)
				e := audit.Entry{Action: "switch", Target: switchOf(caller), After: value}
				if err := l.Change(ctx, e, func(ctx context.Context) error {
					_, err := s.Set(ctx, switchOf(caller), value, state.Any, state.SetOptions{})
					return err
				}); err != nil {
					fmt.Println("failed:", err)
					return
				}
				fmt.Println(caller, n)
			}
		})
	}
	callers.Wait()
}

// TestKill lets a process make changes and kills it at a random moment, 200 times. Confirmed changes are kept, the chain is unaltered, and every
// change has its entry.
// Proves: State is whole and apart
func TestKill(t *testing.T) {
	t.Parallel()
	testkit.SkipEmulated(t, "it starts processes")
	lanes, kills := 4, 200
	if testkit.Race(t) || testing.Short() { // the work is done in child processes, which the race detector only makes slow
		kills = 8
	}
	for lane := range lanes {
		t.Run(fmt.Sprint(lane), func(t *testing.T) {
			t.Parallel()
			dir, random := t.TempDir(), rand.New(rand.NewPCG(7, uint64(lane)))
			answered := make([]int, killCallers)
			for kill := range kills / lanes {
				killOnce(t, dir, random, answered)
				checkKilled(t, dir, answered)
				if t.Failed() {
					t.Fatalf("after %d kills", kill+1)
				}
			}
		})
	}
}

// killOnce runs a process that makes changes, kills it, and records the last confirmed change of each caller.
func killOnce(t *testing.T, dir string, random *rand.Rand, answered []int) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), self)
	c.Env = append(os.Environ(), childDir+"="+dir)
	c.Stderr = os.Stderr
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for left := random.IntN(30); ; left-- {
		if left == 0 {
			time.Sleep(time.Duration(random.IntN(1000)) * time.Microsecond) // killed somewhere between two lines
			if err := c.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
		if !lines.Scan() {
			break
		}
		var caller, n int
		if _, err := fmt.Sscan(lines.Text(), &caller, &n); err != nil || strings.HasPrefix(lines.Text(), "failed") {
			t.Errorf("the process says %q", lines.Text())
		} else {
			answered[caller] = n
		}
	}
	_ = c.Wait() // it was killed
}

// checkKilled checks the state that a killed process has left.
func checkKilled(t *testing.T, dir string, answered []int) {
	t.Helper()
	store, l, err := opened(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer store.Close()
	ends := verify(t, l)
	if ends.Last > 0 && ends.Last-ends.First+1 > killMost+1 { // the next entry drops one that the process should have dropped
		t.Errorf("the ends are %+v", ends)
	}
	entries := map[string]bool{}
	for _, r := range list(t, l) {
		entries[r.Target+" "+string(r.After)] = true
	}
	for caller, n := range answered {
		e, _, err := store.Space("switches").Get(t.Context(), switchOf(caller), 100)
		if err != nil {
			t.Error(err)
		}
		// The change after it may have been made without being confirmed.
		now := 0
		fmt.Sscan(string(e.Value), &now)
		if now != n && now != n+1 {
			t.Errorf("switch %d is at %d, after %d was answered", caller, now, n)
		}
		if now > 0 && !entries[fmt.Sprint(switchOf(caller), " ", now)] && ends.First == 1 {
			t.Errorf("switch %d is at %d, which has no entry", caller, now)
		}
		answered[caller] = now
	}
}
