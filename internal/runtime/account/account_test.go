package account_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/account"
)

func TestTake(t *testing.T) {
	t.Parallel()
	a := account.New(map[account.Kind]int64{account.Memory: 80})
	steps := []struct {
		name  string
		n     int64
		first bool
		want  bool
		held  int64
	}{
		{"some", 60, false, true, 60},
		{"up to the reserve", 10, false, true, 70},
		{"the reserve, by a tool that has something", 1, false, false, 70},
		{"the reserve, by a tool that has nothing", 10, true, true, 80},
		{"more than the limit", 1, true, false, 80},
		{"nothing", 0, false, true, 80},
	}
	for _, s := range steps {
		if got := a.Take(account.Memory, s.n, s.first); got != s.want || a.Held(account.Memory) != s.held {
			t.Errorf("%s: got %t with %d held, want %t with %d", s.name, got, a.Held(account.Memory), s.want, s.held)
		}
	}
	a.Give(account.Memory, 80)
	if a.Held(account.Memory) != 0 {
		t.Errorf("%d are held after everything was given back", a.Held(account.Memory))
	}
	if !a.Take(account.Mappings, 1<<40, false) {
		t.Error("a kind without a limit has one")
	}
}

// TestWait lets large and small claims wait for a claim that holds everything.
func TestWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := account.New(map[account.Kind]int64{account.Memory: 100})
		if !a.Take(account.Memory, 100, true) {
			t.Fatal("an empty account has no room")
		}
		var got []string
		var mu sync.Mutex
		wait := func(name string, n int64) {
			go func() {
				if err := a.Wait(t.Context(), &account.Claim{Kind: account.Memory, N: n, First: true}, nil); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				mu.Lock()
				got = append(got, name)
				mu.Unlock()
			}()
			synctest.Wait()
		}
		wait("large", 90)
		wait("small", 10)
		wait("other", 10)
		if got, want := a.Use(account.Memory), (account.Use{Held: 100, Limit: 100, Waiting: 3}); got != want {
			t.Errorf("got %+v, want %+v", got, want)
		}
		if got := a.Use(account.Code); got != (account.Use{}) {
			t.Errorf("got %+v for a kind that nobody has taken", got)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := a.Wait(ctx, &account.Claim{Kind: account.Memory, N: 5, First: true}, nil); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a wait for more than the limit: got %v", err)
		}
		for _, step := range []struct {
			n    int64
			want int
		}{{10, 1}, {10, 2}, {80, 2}, {10, 3}} {
			a.Give(account.Memory, step.n)
			synctest.Wait()
			mu.Lock()
			if len(got) != step.want {
				t.Errorf("%v were served, want %d of them", got, step.want)
			}
			mu.Unlock()
		}
		if want := []string{"small", "other", "large"}; len(got) != 3 || got[0] != want[0] || got[2] != want[2] {
			t.Errorf("got the order %v, want %v", got, want)
		}
		if a.Wanted() {
			t.Error("a claim is said to wait, although all were served")
		}
	})
}

// TestAhead lets claimants that hold something wait behind others that hold nothing. The claimants that hold something are served first, in the
// order in which they came. Proves: Limits hold, one by one and in sum
func TestAhead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := account.New(map[account.Kind]int64{account.Memory: 100})
		a.Add(account.Memory, 100)
		var got []string
		var mu sync.Mutex
		wait := func(name string, n int64, ahead bool) {
			go func() {
				if err := a.Wait(t.Context(), &account.Claim{Kind: account.Memory, N: n, First: true, Ahead: ahead}, nil); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				mu.Lock()
				defer mu.Unlock()
				got = append(got, name)
			}()
			synctest.Wait()
		}
		wait("begins", 10, false)
		wait("holds", 10, true)
		wait("begins, too", 10, false)
		wait("holds, too", 10, true)
		wait("claims more than there is", 90, true)
		for range 4 {
			a.Give(account.Memory, 10)
			synctest.Wait()
		}
		mu.Lock()
		if want := []string{"holds", "holds, too", "begins", "begins, too"}; !slices.Equal(got, want) {
			t.Errorf("got the order %q, want %q", got, want)
		}
		mu.Unlock()
		a.Give(account.Memory, 90)
		synctest.Wait()
	})
}

// TestKey lets two claims share a key to a reserve that others always use up. The second gets its turn when the first is done, not only when nobody
// uses the reserve any more.
// Proves: Limits hold, one by one and in sum
func TestKey(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := account.New(map[account.Kind]int64{account.Memory: 80})
		a.Add(account.Memory, 80)
		key := new(account.Key)
		got := make(chan *account.Claim, 3)
		wait := func(c *account.Claim) {
			go func() {
				if err := a.Wait(t.Context(), c, nil); err != nil {
					t.Error(err)
				}
				got <- c
			}()
			synctest.Wait()
		}
		one, two, other := &account.Claim{N: 5, Key: key}, &account.Claim{N: 5, Key: key}, &account.Claim{N: 5, First: true}
		wait(one)
		wait(two)
		wait(other)
		next := func(want *account.Claim) {
			t.Helper()
			a.Give(account.Memory, 5)
			synctest.Wait()
			if c := <-got; c != want || !c.First {
				t.Errorf("got %+v, want %+v as the first", c, want)
			}
			if len(got) > 0 {
				t.Error("two claims hold what is enough for only one")
			}
		}
		next(one)
		next(other) // claim one still holds the key, which claim two needs
		one.Key.Return()
		next(two)
		if key.Take() {
			t.Error("claim two holds the reserve's key, but the key can be taken again")
		}
	})
}

// TestLook lets a waiting claim use room that its own look has freed.
func TestLook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := account.New(map[account.Kind]int64{account.Memory: 100})
		a.Add(account.Memory, 100)
		begun, looks := time.Now(), 0
		err := a.Wait(t.Context(), &account.Claim{Kind: account.Memory, N: 60, First: true}, func(granted <-chan struct{}) {
			looks++
			a.Give(account.Memory, 30)
			select {
			case <-granted:
				if looks < 2 {
					t.Error("it was granted more than there is")
				}
			default:
				if looks == 2 {
					t.Error("it keeps looking although there is room")
				}
			}
		})
		if took := time.Since(begun); err != nil || looks != 2 || took > time.Minute {
			t.Errorf("got %v after %v and %d looks, want room after two", err, took, looks)
		}
		if held := a.Held(account.Memory); held != 100 {
			t.Errorf("%d are held, want 100", held)
		}
	})
}

// TestSum has many goroutines take and give. No limit is ever exceeded, and nothing is lost.
// Proves: Limits hold, one by one and in sum
func TestSum(t *testing.T) {
	t.Parallel()
	const limit = 1000
	a := account.New(map[account.Kind]int64{account.Memory: limit})
	var used sync.Map
	var wait sync.WaitGroup
	for worker := range 16 {
		wait.Go(func() {
			for n := range 500 {
				size := int64((worker*37+n*101)%300 + 1)
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				if err := a.Wait(ctx, &account.Claim{Kind: account.Memory, N: size, First: n%2 == 0}, nil); err != nil {
					t.Error(err)
				}
				cancel()
				used.Store(worker, size)
				var sum int64
				used.Range(func(_, v any) bool { sum += v.(int64); return true })
				if sum > limit {
					t.Errorf("%d are in use; the limit is %d", sum, limit)
				}
				used.Delete(worker)
				a.Give(account.Memory, size)
			}
		})
	}
	wait.Wait()
	if a.Held(account.Memory) != 0 || a.Wanted() {
		t.Errorf("%d are held at the end", a.Held(account.Memory))
	}
}

func TestMachine(t *testing.T) {
	t.Parallel()
	if n := account.MachineMemory(); n < 1<<20 {
		t.Errorf("the machine has %d bytes of memory", n)
	}
	if n := account.MachineMappings(); n < 0 {
		t.Errorf("the machine has %d mappings", n)
	}
}

func BenchmarkTake(b *testing.B) {
	a := account.New(map[account.Kind]int64{account.Memory: 1 << 30})
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			a.Take(account.Memory, 100, false)
			a.Give(account.Memory, 100)
		}
	})
}
