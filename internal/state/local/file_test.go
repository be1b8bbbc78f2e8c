package local_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/state/local"
	"github.com/toolsrv/toolsrv/internal/state/memory"
	"github.com/toolsrv/toolsrv/internal/testkit"
)

const fileName = "state.db"

// TestReopen closes a store and opens it again. Everything is there, and versions continue.
func TestReopen(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "made", "here")
	var last uint64
	for round := range 5 {
		store := open(t, dir)
		s := store.Space("a")
		if round > 0 {
			e, ok, err := s.Get(t.Context(), "kept", state.MaxValue)
			if err != nil || !ok || e.Version != last || string(e.Value) != fmt.Sprint(round-1) {
				t.Fatalf("round %d: got %+v, %t, %v", round, e, ok, err)
			}
			if _, err := s.Delete(t.Context(), "kept", int64(last)); err != nil {
				t.Fatal(err)
			}
		}
		version, err := s.Set(t.Context(), "kept", fmt.Append(nil, round), state.Absent, state.SetOptions{TTL: time.Hour})
		if err != nil || version <= last {
			t.Fatalf("round %d: got the version %d after %d, %v", round, version, last, err)
		}
		last = version
		if err := errors.Join(store.Close(), store.Close()); err != nil {
			t.Fatal(err)
		}
	}
	if runtime.GOOS == "windows" {
		return // without modes
	}
	for path, want := range map[string]os.FileMode{dir: 0o700, filepath.Join(dir, fileName): 0o600} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: got %v, %v, want %v", path, info.Mode(), err, want)
		}
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) != 1 {
		t.Errorf("got %v, %v, want one file", files, err)
	}
}

// TestLocked opens a directory twice.
// Proves: State is whole and apart
func TestLocked(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store := open(t, dir)
	began := time.Now()
	_, err := local.Open(dir, local.Options{})
	if !errors.Is(err, local.ErrLocked) || !strings.Contains(err.Error(), "name another directory") {
		t.Errorf("got %v, want an error that says the state is in use", err)
	}
	if took := time.Since(began); took > time.Minute {
		t.Errorf("said so after %v", took)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	if err := open(t, dir).Close(); err != nil {
		t.Error(err)
	}
}

// TestForeign opens files that are not states of ours, and changes nothing in them.
// Proves: State is whole and apart
func TestForeign(t *testing.T) {
	t.Parallel()
	other := func(t *testing.T, path, bucket, value string) {
		db, err := bbolt.Open(path, 0o600, nil)
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(db.Update(func(tx *bbolt.Tx) error {
			b, err := tx.CreateBucket([]byte(bucket))
			if err != nil {
				return err
			}
			return b.Put([]byte("format"), []byte(value))
		}), db.Close()); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct {
		name string
		make func(t *testing.T, path string)
		want string
	}{
		{"text", func(t *testing.T, path string) { write(t, path, []byte(strings.Repeat("not a state\n", 5000))) }, "is not a state that this version can read"},
		{"short text", func(t *testing.T, path string) { write(t, path, []byte("not a state\n")) }, "is not a state that this version can read"},
		{"zeros", func(t *testing.T, path string) { write(t, path, make([]byte, 1<<16)) }, "is not a state that this version can read"},
		{"another program's", func(t *testing.T, path string) { other(t, path, "etcd", "1") }, "it is the file of another program"},
		{"a newer version's", func(t *testing.T, path string) { other(t, path, "toolsrv", "2") }, `its format is "2", but this version reads 1`},
		{"a directory", func(t *testing.T, path string) {
			if err := os.Mkdir(path, 0o700); err != nil {
				t.Fatal(err)
			}
		}, "it is not a regular file"},
		{"a link", func(t *testing.T, path string) {
			if err := os.Symlink("elsewhere", path); err != nil {
				t.Skip(err)
			}
		}, "it is not a regular file"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			path := filepath.Join(t.TempDir(), fileName)
			test.make(t, path)
			before, _ := os.ReadFile(path)
			_, err := local.Open(filepath.Dir(path), local.Options{})
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "another directory under [state]") {
				t.Errorf("got %v, want it to contain %q, and what to do", err, test.want)
			}
			if after, _ := os.ReadFile(path); string(after) != string(before) {
				t.Error("the file was changed")
			}
		})
	}
}

func write(t *testing.T, path string, content []byte) {
	t.Helper()
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestDamaged changes a file in many places. A change is detected, unless it is in an unused part.
// Proves: State is whole and apart
func TestDamaged(t *testing.T) {
	t.Parallel()
	testkit.SkipEmulated(t, "page faults happen in the emulator")
	dir := t.TempDir()
	store := open(t, dir)
	want := map[string]string{}
	for _, name := range []string{"a", "b"} {
		for i := range 60 {
			key, value := fmt.Sprintf("%s%03d", name, i), strings.Repeat(name, 10+i*i)
			want[key] = value
			if _, err := store.Space(name).Set(t.Context(), key, []byte(value), state.Any, state.SetOptions{TTL: time.Duration(i) * time.Hour}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	whole, err := os.ReadFile(filepath.Join(dir, fileName))
	if err != nil {
		t.Fatal(err)
	}
	random := rand.New(rand.NewPCG(1, 2))
	damages := map[string]func([]byte) []byte{
		"half":          func(b []byte) []byte { return b[:len(b)/2] },
		"one page":      func(b []byte) []byte { return b[:4096] },
		"zeroed middle": func(b []byte) []byte { clear(b[len(b)/8 : len(b)/2]); return b },
	}
	for i := range 150 {
		// Most unused pages are at the end.
		at, mask := random.IntN(len(whole)/2), byte(1+random.IntN(255))
		damages[fmt.Sprintf("%d: %d^%d", i, at, mask)] = func(b []byte) []byte { b[at] ^= mask; return b }
		page := random.IntN(len(whole)/2) &^ 4095
		damages[fmt.Sprintf("%d: page %d", i, page)] = func(b []byte) []byte {
			for j := range 64 { // its header, and the bytes after it
				b[page+j] = byte(random.Uint32())
			}
			return b
		}
	}
	found := 0
	for name, damage := range damages {
		dir := t.TempDir() // bbolt keeps a file locked after it has panicked
		write(t, filepath.Join(dir, fileName), damage(append([]byte{}, whole...)))
		store, err := local.Open(dir, local.Options{})
		if err != nil {
			if found++; !errors.Is(err, local.ErrDamaged) && !errors.Is(err, local.ErrForeign) {
				t.Errorf("%s: got the error %v", name, err)
			}
			continue
		}
		for key, value := range want {
			if e, ok, err := store.Space(key[:1]).Get(t.Context(), key, state.MaxValue); !ok || err != nil || string(e.Value) != value {
				t.Errorf("%s: %s has become %.20q, %t, %v", name, key, e.Value, ok, err)
				break
			}
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}
	if found < len(damages)/4 {
		t.Errorf("only %d of %d damages were found", found, len(damages))
	}
}

// TestEmpty opens a file that has been emptied, as by the first step of a careless restore. It must not be initialized as if it were new.
func TestEmpty(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	write(t, filepath.Join(dir, fileName), nil)
	_, err := local.Open(dir, local.Options{})
	if !errors.Is(err, local.ErrDamaged) || !strings.Contains(err.Error(), "state.db is damaged (it is empty): put a backup in its place, or move it away") {
		t.Errorf("got %v, want an error that says the file is empty, and what to do", err)
	}
	if info, err := os.Stat(filepath.Join(dir, fileName)); err != nil || info.Size() != 0 {
		t.Errorf("the file was changed: %v, %v", info, err)
	}
}

// TestTruncated truncates a running store's file. Reading a missing part is an error, and the process goes on.
// Proves: State is whole and apart
func TestTruncated(t *testing.T) {
	t.Parallel()
	testkit.SkipEmulated(t, "page faults happen in the emulator")
	dir := t.TempDir()
	store := open(t, dir)
	s := store.Space("a")
	const keys = 50
	for i := range keys {
		if _, err := s.Set(t.Context(), fmt.Sprint(i), make([]byte, 10_000), state.Any, state.SetOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Truncate(filepath.Join(dir, fileName), 16<<10); err != nil {
		_ = store.Close()
		t.Skip(err) // not every system can truncate a mapped file
	}
	failed := 0
	for i := range keys {
		_, _, err := s.Get(t.Context(), fmt.Sprint(i), state.MaxValue)
		if err != nil {
			failed++
		}
		if err != nil && (!errors.Is(err, state.ErrUnavailable)) {
			t.Errorf("get %d: got %v", i, err)
		}
	}
	if failed == 0 {
		t.Error("everything can still be read")
	}
	for range 3 {
		if _, err := s.Set(t.Context(), "new", nil, state.Any, state.SetOptions{}); !errors.Is(err, state.ErrUnavailable) {
			t.Errorf("set: got %v", err)
		}
	}
	if err := store.Close(); err == nil {
		t.Error("closing the truncated store returns no error")
	}
}

// TestCutOff opens files that were truncated at each of their pages. The error says so, unless bbolt itself has a better one, as about its
// list of free pages.
// Proves: State is whole and apart
func TestCutOff(t *testing.T) {
	t.Parallel()
	testkit.SkipEmulated(t, "page faults happen in the emulator")
	dir := t.TempDir()
	store := open(t, dir)
	s := store.Space("a")
	for i := range 50 {
		if _, err := s.Set(t.Context(), fmt.Sprint(i), make([]byte, 5000), state.Any, state.SetOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	whole := testkit.Read(t, dir, fileName)
	needs := -1 // size at the first truncation that was reported
	for n := 4 * 4096; n < len(whole); n += 4096 {
		cut := t.TempDir()
		if err := os.WriteFile(filepath.Join(cut, fileName), whole[:n], 0o600); err != nil {
			t.Fatal(err)
		}
		store, err := local.Open(cut, local.Options{})
		if err == nil { // only unused pages are missing
			err = store.Close()
			if needs < 0 || n < needs || err != nil {
				t.Errorf("%d bytes, of which %d are needed: opened, and closed with %v", n, needs, err)
			}
			continue
		}
		if !errors.Is(err, local.ErrDamaged) || strings.Contains(err.Error(), "runtime error") {
			t.Errorf("%d bytes: got %v, want an error that says the file was cut off", n, err)
		}
		if _, after, found := strings.Cut(err.Error(), "it was cut off: it has "); found { // otherwise bbolt has found it first
			has := 0
			if _, err := fmt.Sscanf(after, "%d bytes of %d", &has, &needs); err != nil || has != n || needs <= n {
				t.Errorf("%d bytes: it has %d of %d: %v", n, has, needs, err)
			}
		}
	}
	if needs < 50*5000 {
		t.Errorf("%d of %d bytes are needed: nothing was cut off", needs, len(whole))
	}
}

// TestTwin does the same on disk and in memory, and opens the file again from time to time.
// Proves: State is whole and apart
func TestTwin(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store, twin := open(t, dir), memory.New()
	random := rand.New(rand.NewPCG(3, 4))
	quota := state.Usage{Entries: 20, Bytes: 20_000}
	for i := range 1500 {
		if random.IntN(200) == 0 {
			if err := store.Close(); err != nil {
				t.Fatal(err)
			}
			store = open(t, dir)
		}
		name, key := fmt.Sprint(random.IntN(2)), strings.Repeat("k", 1+random.IntN(30))
		expect := []int64{state.Any, state.Any, state.Any, state.Absent, int64(random.IntN(i + 1))}[random.IntN(5)]
		value := make([]byte, random.IntN(3000))
		step := func(s state.Space) string {
			var got any
			var err error
			switch i % 5 {
			case 0:
				got, err = s.Delete(t.Context(), key, expect)
			case 1:
				var keys []string
				var more bool
				keys, more, err = s.List(t.Context(), key, "", 3)
				got = fmt.Sprint(keys, more)
			default:
				got, err = s.Set(t.Context(), key, value, expect, state.SetOptions{Quota: quota})
			}
			u, failed := s.Usage(t.Context())
			e, ok, failedGet := s.Get(t.Context(), key, state.MaxValue)
			return fmt.Sprint(got, err, u, failed, len(e.Value), e.Version, ok, failedGet)
		}
		if got, want := step(store.Space(name)), step(twin.Space(name)); got != want {
			t.Fatalf("step %d: got %s, want %s", i, got, want)
		}
	}
	if err := store.Close(); err != nil {
		t.Error(err)
	}
}
