// Package statetest tests that a store keeps the promises of package state.
package statetest

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/toolsrv/toolsrv/internal/state"
)

// testPlain runs the tests in which no time has to pass.
func testPlain(t *testing.T, open func(t *testing.T) state.Store) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, state.Store)
	}{
		{"Expect", testExpect},
		{"Bounds", testBounds},
		{"Lists", testLists},
		{"Spaces", testSpaces},
		{"Quota", testQuota},
		{"QuotaOfMany", testQuotaOfMany},
		{"Increment", testIncrement},
		{"WatchMany", testWatchMany},
		{"Closed", testClosed},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := open(t)
			test.run(t, s)
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}

// Test runs all tests on stores that open returns. Each is closed at the end of its test.
func Test(t *testing.T, open func(t *testing.T) state.Store) {
	testPlain(t, open)
	for _, test := range timed {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { runTimed(t, test.run, open(t), bubble{}) })
		})
	}
}

// TestSet runs all tests on stores that take their time from a SetClock.
func TestSet(t *testing.T, open func(t *testing.T, c *SetClock) state.Store) {
	testPlain(t, func(t *testing.T) state.Store { return open(t, NewSetClock()) })
	for _, test := range timed {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			c := NewSetClock()
			runTimed(t, test.run, open(t, c), c)
		})
	}
}

// timed are the tests in which time passes.
var timed = []struct {
	name string
	run  func(*testing.T, state.Space, Clock)
}{
	{"Expiry", testExpiry},
	{"QuotaOfExpired", testQuotaOfExpired},
	{"Watch", testWatch},
}

func runTimed(t *testing.T, run func(*testing.T, state.Space, Clock), s state.Store, c Clock) {
	run(t, s.Space("a"), c)
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// set sets a key without an expiry, whatever its version is.
func set(t *testing.T, s state.Space, key, value string) uint64 {
	t.Helper()
	version, err := s.Set(t.Context(), key, []byte(value), state.Any, state.SetOptions{})
	if err != nil {
		t.Fatalf("set %.60q: %v", key, err)
	}
	return version
}

// get returns the value of a key, or "-" if there is none.
func get(t *testing.T, s state.Space, key string) string {
	t.Helper()
	e, ok, err := s.Get(t.Context(), key, state.MaxValue)
	if err != nil {
		t.Fatalf("get %.60q: %v", key, err)
	}
	if !ok {
		return "-"
	}
	if e.Key != key || e.Version == 0 {
		t.Errorf("get %.60q: got the key %.60q at version %d", key, e.Key, e.Version)
	}
	return string(e.Value)
}

func usage(t *testing.T, s state.Space) state.Usage {
	t.Helper()
	u, err := s.Usage(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return u
}

// testExpect changes a key with each kind of expected version, and checks that a version is never used twice.
func testExpect(t *testing.T, store state.Store) {
	s, ctx := store.Space("a"), t.Context()
	seen := map[uint64]bool{}
	last := uint64(0)
	for i, step := range []struct {
		do     string // set or delete
		expect func() int64
		want   error
	}{
		{"delete", func() int64 { return state.Any }, nil},
		{"delete", func() int64 { return state.Absent }, nil},
		{"delete", func() int64 { return 1 }, state.ErrConflict},
		{"set", func() int64 { return 1 }, state.ErrConflict},
		{"set", func() int64 { return state.Absent }, nil},
		{"set", func() int64 { return state.Absent }, state.ErrConflict},
		{"set", func() int64 { return int64(last) }, nil},
		{"set", func() int64 { return int64(last) - 1 }, state.ErrConflict},
		{"set", func() int64 { return int64(last) + 1 }, state.ErrConflict},
		{"set", func() int64 { return state.Any }, nil},
		{"set", func() int64 { return math.MinInt64 }, state.ErrInvalid},
		{"set", func() int64 { return -2 }, state.ErrInvalid},
		{"delete", func() int64 { return -2 }, state.ErrInvalid},
		{"delete", func() int64 { return math.MaxInt64 }, state.ErrConflict},
		{"delete", func() int64 { return state.Absent }, state.ErrConflict},
		{"delete", func() int64 { return int64(last) }, nil},
		{"set", func() int64 { return int64(last) }, state.ErrConflict},
		{"set", func() int64 { return state.Absent }, nil},
		{"delete", func() int64 { return state.Any }, nil},
		{"set", func() int64 { return state.Any }, nil},
	} {
		before := get(t, s, "key")
		var err error
		if step.do == "set" {
			var version uint64
			if version, err = s.Set(ctx, "key", fmt.Append(nil, i), step.expect(), state.SetOptions{}); err == nil {
				if version <= last || seen[version] || version >= 1<<63 {
					t.Errorf("step %d: got the version %d after %d", i, version, last)
				}
				last = version
				seen[version] = true
			}
		} else {
			var deleted bool
			if deleted, err = s.Delete(ctx, "key", step.expect()); deleted != (err == nil && before != "-") {
				t.Errorf("step %d: deleted %t, and the value was %s", i, deleted, before)
			}
		}
		if !errors.Is(err, step.want) {
			t.Errorf("step %d: got the error %v, want %v", i, err, step.want)
		}
		want := before
		switch {
		case err != nil:
		case step.do == "set":
			want = fmt.Sprint(i)
		default:
			want = "-"
		}
		if got := get(t, s, "key"); got != want {
			t.Errorf("step %d: the key has %s, want %s", i, got, want)
		}
	}
}

// testBounds tries the largest allowed sizes, and one byte more.
func testBounds(t *testing.T, store state.Store) {
	s, ctx := store.Space("a"), t.Context()
	long := strings.Repeat("k", state.MaxKey)
	for _, test := range []struct {
		name, key string
		value     int
		ttl       time.Duration
		want      error
	}{
		{"the largest", long, state.MaxValue, state.MaxTTL, nil},
		{"the smallest", "k", 0, time.Millisecond, nil},
		{"no key", "", 1, 0, state.ErrInvalid},
		{"a long key", long + "k", 1, 0, state.ErrTooLarge},
		{"a long value", "k", state.MaxValue + 1, 0, state.ErrTooLarge},
		{"a negative time", "k", 1, -1, state.ErrInvalid},
		{"a short time", "k", 1, time.Millisecond - 1, state.ErrInvalid},
		{"a long time", "k", 1, state.MaxTTL + 1, state.ErrInvalid},
	} {
		_, err := s.Set(ctx, test.key, make([]byte, test.value), state.Any, state.SetOptions{TTL: test.ttl})
		if !errors.Is(err, test.want) {
			t.Errorf("%s: got the error %v, want %v", test.name, err, test.want)
		}
	}
	if got := get(t, s, long); len(got) != state.MaxValue {
		t.Errorf("the largest value has %d bytes", len(got))
	}
	for most, want := range map[int]error{state.MaxValue: nil, state.MaxValue - 1: state.ErrTooLarge, 0: state.ErrTooLarge} {
		if e, ok, err := s.Get(ctx, long, most); !errors.Is(err, want) || ok != (want == nil) || len(e.Value) > most {
			t.Errorf("at most %d bytes: got %d, %t, %v", most, len(e.Value), ok, err)
		}
	}
	for _, key := range []string{"", long + "k"} {
		_, _, failedGet := s.Get(ctx, key, state.MaxValue)
		_, failedDelete := s.Delete(ctx, key, state.Any)
		if failedGet == nil || failedDelete == nil {
			t.Errorf("a key of %d bytes is read and deleted with %v and %v", len(key), failedGet, failedDelete)
		}
	}
}

// testLists lists hostile keys in pages.
func testLists(t *testing.T, store state.Store) {
	s, ctx := store.Space("a"), t.Context()
	keys := []string{"\x00", "\x00\x00", "a", "a\x00", "a/", "a/b", "a/b/c", "a/\xff", "a/\xff\xff", "a0", "b", "values/a", "\xff", "\xff\xff", "ä", strings.Repeat("\xff", state.MaxKey)}
	for i := range 30 {
		keys = append(keys, fmt.Sprintf("n/%03d", i))
	}
	for _, key := range keys {
		set(t, s, key, key)
	}
	slices.Sort(keys)
	for _, prefix := range append([]string{"", "nothing", "a/\x00"}, keys...) {
		var want []string
		for _, key := range keys {
			if strings.HasPrefix(key, prefix) {
				want = append(want, key)
			}
		}
		for _, limit := range []int{1, 2, 7, 1000, 0, -1, math.MaxInt} {
			var got []string
			after, more := "", true
			for more {
				var page []string
				var err error
				if page, more, err = s.List(ctx, prefix, after, limit); err != nil || more && len(page) == 0 || limit > 0 && len(page) > limit {
					t.Fatalf("%.60q after %.60q, %d: got %d keys, more %t, %v", prefix, after, limit, len(page), more, err)
				}
				if got = append(got, page...); len(page) > 0 {
					after = page[len(page)-1]
				}
			}
			if !slices.Equal(got, want) {
				t.Errorf("%.60q in pages of %d: got %.200q, want %.200q", prefix, limit, got, want)
			}
		}
	}
	for after, want := range map[string]string{"a/a": "a/b", "n/": "n/000", "n/0005": "n/001", "\xff\xff\x00": strings.Repeat("\xff", state.MaxKey)} {
		if got, _, err := s.List(ctx, "", after, 1); err != nil || len(got) != 1 || got[0] != want {
			t.Errorf("after %q: got %.60q, %v, want %.60q", after, got, err, want)
		}
	}
	if got, more, err := s.List(ctx, "a", "b", 10); len(got) != 0 || more || err != nil {
		t.Errorf("after the prefix: got %q, %t, %v", got, more, err)
	}
}

// testSpaces checks that no name of a space leads into another space.
func testSpaces(t *testing.T, store state.Store) {
	names := []string{"a", "a/b", "a/", "/a", "values/a", "due/a", "a\x00", "A"}
	for _, name := range names {
		set(t, store.Space(name), "key", name)
	}
	for _, name := range names {
		s := store.Space(name)
		keys, _, err := s.List(t.Context(), "", "", 0)
		if got := get(t, s, "key"); got != name || len(keys) != 1 || err != nil {
			t.Errorf("%q has %q and the keys %q, %v", name, got, keys, err)
		}
		if got, want := usage(t, s), (state.Usage{Entries: 1, Bytes: int64(3+len(name)) + state.Overhead}); got != want {
			t.Errorf("%q holds %+v, want %+v", name, got, want)
		}
	}
	if got := usage(t, store.Space("new")); got != (state.Usage{}) {
		t.Errorf("a space that was never written to holds %+v", got)
	}
}

// testQuota fills a space up to its quota, in entries and in bytes, and checks that the next byte is refused.
func testQuota(t *testing.T, store state.Store) {
	s := store.Space("a")
	room := 3*(state.Overhead+1) + int64(30)
	put := func(key string, size int, quota state.Usage) error {
		_, err := s.Set(t.Context(), key, make([]byte, size), state.Any, state.SetOptions{Quota: quota})
		return err
	}
	for i, step := range []struct {
		key   string
		size  int
		quota state.Usage
		want  error
	}{
		{"a", 10, state.Usage{Bytes: room}, nil},
		{"b", 10, state.Usage{Bytes: room}, nil},
		{"c", 11, state.Usage{Bytes: room}, state.ErrQuota},
		{"c", 10, state.Usage{Bytes: room}, nil},
		{"d", 0, state.Usage{Bytes: room}, state.ErrQuota},
		{"c", 11, state.Usage{Bytes: room}, state.ErrQuota},
		{"c", 9, state.Usage{Bytes: room}, nil},
		{"c", 10, state.Usage{Bytes: room}, nil},
		{"d", 0, state.Usage{Entries: 3}, state.ErrQuota},
		{"c", 10, state.Usage{Entries: 3}, nil},
		{"c", 10, state.Usage{Entries: 1, Bytes: 1}, nil}, // the quota was lowered: existing values may get smaller
		{"c", 9, state.Usage{Entries: 1, Bytes: 1}, nil},
		{"c", 10, state.Usage{Entries: 1, Bytes: 1}, state.ErrQuota},
		{"d", 10, state.Usage{Entries: 4, Bytes: room + state.Overhead + 11}, nil},
		{"e", 10, state.Usage{}, nil},
	} {
		before := usage(t, s)
		if err := put(step.key, step.size, step.quota); !errors.Is(err, step.want) {
			t.Errorf("step %d: got the error %v, want %v", i, err, step.want)
		} else if err != nil && usage(t, s) != before {
			t.Errorf("step %d: what failed has made %+v of %+v", i, usage(t, s), before)
		}
	}
}

// testQuotaOfMany has many goroutines fill a space at once, change its values and delete them, and checks that the quota holds to the byte.
func testQuotaOfMany(t *testing.T, store state.Store) {
	s := store.Space("a")
	const callers, each, entries = 16, 40, 100
	quota := state.Usage{Entries: entries, Bytes: entries * (state.Overhead + 6 + 5)}
	var refused, made atomic.Int64
	var wg sync.WaitGroup
	for caller := range callers {
		wg.Go(func() {
			for i := range each {
				_, err := s.Set(t.Context(), fmt.Sprintf("%02d/%03d", caller, i), []byte("12345"), state.Absent, state.SetOptions{Quota: quota})
				switch {
				case err == nil:
					made.Add(1)
				case errors.Is(err, state.ErrQuota):
					refused.Add(1)
				default:
					t.Error(err)
				}
				if u := usage(t, s); u.Entries > quota.Entries || u.Bytes > quota.Bytes {
					t.Errorf("the space holds %+v, allowed are %+v", u, quota)
				}
			}
		})
	}
	wg.Wait()
	if made.Load() != entries || refused.Load() != callers*each-entries || usage(t, s) != quota {
		t.Errorf("made %d, refused %d, and the space holds %+v; want %d, and %+v", made.Load(), refused.Load(), usage(t, s), entries, quota)
	}
}

// testIncrement has many goroutines count by compare-and-set, and checks that no count is lost.
func testIncrement(t *testing.T, store state.Store) {
	s := store.Space("a")
	const callers, each = 8, 10
	var wg sync.WaitGroup
	for range callers {
		wg.Go(func() {
			for done := 0; done < each; {
				e, _, err := s.Get(t.Context(), "n", state.MaxValue)
				if err != nil {
					t.Error(err)
					return
				}
				var n int
				fmt.Sscan(string(e.Value), &n)
				switch _, err := s.Set(t.Context(), "n", fmt.Append(nil, n+1), int64(e.Version), state.SetOptions{}); {
				case err == nil:
					done++
				case !errors.Is(err, state.ErrConflict):
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	if got, want := get(t, s, "n"), fmt.Sprint(callers*each); got != want {
		t.Errorf("counted %s, want %s", got, want)
	}
}

// testClosed uses a closed store.
func testClosed(t *testing.T, store state.Store) {
	s, ctx := store.Space("a"), t.Context()
	set(t, s, "key", "value")
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	_, _, failedGet := s.Get(ctx, "key", state.MaxValue)
	_, failedSet := s.Set(ctx, "key", nil, state.Any, state.SetOptions{})
	_, failedDelete := s.Delete(ctx, "key", state.Any)
	_, _, failedList := s.List(ctx, "", "", 0)
	_, failedUsage := s.Usage(ctx)
	var failedWatch error
	for _, failedWatch = range s.Watch(ctx, "") {
	}
	for i, err := range []error{failedGet, failedSet, failedDelete, failedList, failedUsage, failedWatch} {
		if !errors.Is(err, state.ErrUnavailable) {
			t.Errorf("use %d of a closed store: got the error %v", i, err)
		}
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := s.Set(cancelled, "key", nil, state.Any, state.SetOptions{}); err == nil {
		t.Error("set with a context that is done")
	}
}
