package local_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/state/local"
	"github.com/toolsrv/toolsrv/internal/testkit"
)

// childRole is the environment variable that gives the test's program another role, in the directory of childDir.
const (
	childRole = "TOOLSRV_STATE_CHILD"
	childDir  = "TOOLSRV_STATE_DIR"
)

func TestMain(m *testing.M) {
	switch role, dir := os.Getenv(childRole), os.Getenv(childDir); role {
	case "":
		os.Exit(m.Run())
	case "write":
		writeForEver(dir)
	default:
		fillDisk(role, dir)
	}
}

// child returns a command that runs this program in a role.
func child(t *testing.T, role, dir string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.CommandContext(t.Context(), self)
	c.Env = append(os.Environ(), childRole+"="+role, childDir+"="+dir)
	c.Stderr = os.Stderr
	return c
}

// killKeys is how many keys are written at once.
const killKeys = 6

func killKey(key int) string { return fmt.Sprint("key/", key) }

// killValue is the value that a key has after its nth change. nil means it was deleted.
func killValue(key, n int) []byte {
	if n%7 == 0 {
		return nil
	}
	random := rand.New(rand.NewPCG(uint64(key), uint64(n)))
	value := bytes.Repeat(fmt.Appendf(nil, "%d of %d, ", n, key), 1+random.IntN(10))
	if n%11 == 0 { // much more than a page
		value = bytes.Repeat(value, 200)
	}
	return value
}

// writeForEver changes keys, and numbers the changes of each key. It prints each change once the store has acknowledged it.
func writeForEver(dir string) {
	store, err := local.Open(dir, local.Options{})
	if err != nil {
		fmt.Println("failed:", err)
		return
	}
	s, ctx := store.Space("a"), context.Background()
	var wg sync.WaitGroup
	for key := range killKeys {
		wg.Go(func() {
			var err error
			n := 0
			if e, ok, err := s.Get(ctx, "n/"+killKey(key), state.MaxValue); err != nil {
				fmt.Println("failed:", err)
			} else if ok {
				fmt.Sscan(string(e.Value), &n)
			}
			for n++; ; n++ {
				if value := killValue(key, n); value == nil {
					_, err = s.Delete(ctx, killKey(key), state.Any)
				} else {
					_, err = s.Set(ctx, killKey(key), value, state.Any, state.SetOptions{TTL: time.Duration(n%3) * time.Hour})
				}
				if err == nil {
					fmt.Printf("%d %d\n", key, n)
					_, err = s.Set(ctx, "n/"+killKey(key), fmt.Append(nil, n), state.Any, state.SetOptions{})
				}
				if err != nil {
					fmt.Println("failed:", err)
					return
				}
			}
		})
	}
	wg.Wait()
}

// TestKill kills a writing process 200 times, wherever it happens to be. Everything that was acknowledged is there, intact, and so is the file.
// Proves: State is whole and apart
func TestKill(t *testing.T) {
	if testing.Short() {
		t.Skip("takes seconds: not with -short")
	}
	t.Parallel()
	testkit.SkipEmulated(t, "it starts processes")
	lanes, kills := 4, 200
	if testkit.Race(t) { // the test starts and ends processes, which the race detector only makes slower
		kills = 8
	}
	for lane := range lanes {
		t.Run(fmt.Sprint(lane), func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			random := rand.New(rand.NewPCG(5, uint64(lane)))
			acknowledged := make([]int, killKeys)
			var last uint64
			for kill := range kills / lanes {
				killOnce(t, dir, random, acknowledged)
				last = checkKilled(t, dir, acknowledged, last)
				if t.Failed() {
					t.Fatalf("after %d kills", kill+1)
				}
			}
		})
	}
}

// killOnce runs a writer, kills it, and records the last acknowledged change of each key.
func killOnce(t *testing.T, dir string, random *rand.Rand, acknowledged []int) {
	t.Helper()
	c := child(t, "write", dir)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for left := random.IntN(40); ; left-- {
		if left == 0 {
			time.Sleep(time.Duration(random.IntN(1000)) * time.Microsecond) // so that the kill comes at any moment, not only just after a line
			if err := c.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
		if !lines.Scan() {
			break
		}
		var key, n int
		if _, err := fmt.Sscan(lines.Text(), &key, &n); err != nil || strings.HasPrefix(lines.Text(), "failed") {
			t.Errorf("the writer says %q", lines.Text())
		} else {
			acknowledged[key] = n
		}
	}
	_ = c.Wait() // it was killed
}

// checkKilled opens the state that a killed process has left, and changes it once. It returns that change's version.
func checkKilled(t *testing.T, dir string, acknowledged []int, last uint64) uint64 {
	t.Helper()
	store := open(t, dir)
	defer store.Close()
	s := store.Space("a")
	for key, n := range acknowledged {
		e, ok, err := s.Get(t.Context(), killKey(key), state.MaxValue)
		if err != nil {
			t.Error(err)
		}
		// The next change may have been made without an acknowledgement.
		fits := func(n int) bool {
			want := killValue(key, n)
			return ok == (want != nil) && bytes.Equal(e.Value, want)
		}
		if n > 0 && !fits(n) && !fits(n+1) {
			t.Errorf("key %d has %.60q, %t, after the change %d was acknowledged", key, e.Value, ok, n)
		}
		if fits(n + 1) {
			acknowledged[key] = n + 1
		}
		if _, err := s.Set(t.Context(), "n/"+killKey(key), fmt.Append(nil, acknowledged[key]), state.Any, state.SetOptions{}); err != nil {
			t.Error(err)
		}
	}
	version, err := s.Set(t.Context(), "last", nil, state.Any, state.SetOptions{})
	if err != nil || version <= last {
		t.Errorf("got the version %d after %d, %v", version, last, err)
	}
	return version
}
