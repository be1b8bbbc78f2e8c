package registry_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/catalog"
	"github.com/toolsrv/toolsrv/internal/catalog/registry"
	"github.com/toolsrv/toolsrv/internal/oci"
	"github.com/toolsrv/toolsrv/internal/signature"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/testkit/certtest"
	"github.com/toolsrv/toolsrv/internal/testkit/ocitest"
)

func TestMain(m *testing.M) { testkit.Main(m, "internal/oci.", "catalog/registry.") }

func noKeys(t *testing.T) oci.Options {
	return oci.Options{Credentials: testkit.Put(t, t.TempDir(), "none.json", "{}")}
}

// push pushes a module to acme/csv, and returns the artifact.
func push(t *testing.T, s *ocitest.Server, tag, module string) *oci.Artifact {
	t.Helper()
	r, err := oci.Open(s.Host, noKeys(t))
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	a, err := r.Push(t.Context(), oci.Reference{Host: s.Host, Repository: "acme/csv", Tag: tag}, "csv.wasm", []byte(module), nil)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// follow opens a source of acme/csv.
func follow(t *testing.T, host, which, folder string, change func(*registry.Options)) *registry.Source {
	t.Helper()
	o := registry.Options{Repository: oci.Reference{Host: host, Repository: "acme/csv"}, Which: which, Registry: noKeys(t), Cache: registry.OpenCache(folder, 0), Poll: 5 * time.Millisecond}
	if change != nil {
		change(&o)
	}
	s, err := registry.Open(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// content returns the module that a source has, and the source's problem.
func content(t *testing.T, s *registry.Source) (content string, problem error) {
	t.Helper()
	l, err := s.List(t.Context())
	if err != nil {
		return "", err
	}
	if len(l.Problems) > 0 {
		problem = l.Problems[0].Err
	}
	e := l.Entries[0]
	f, err := s.Open(t.Context(), e.ID, e.Version)
	if errors.Is(err, catalog.ErrChanged) {
		return "", problem
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	b, err := io.ReadAll(f)
	if err != nil {
		t.Fatal(err)
	}
	if int64(len(b)) != e.Size || e.ID != "csv.wasm" {
		t.Errorf("%s has %d bytes, and %d were listed", e.ID, len(b), e.Size)
	}
	return string(b), problem
}

// await waits until a source has this content, and this problem or none.
func await(t *testing.T, s *registry.Source, want, problem string) {
	t.Helper()
	testkit.Until(t, fmt.Sprintf("%q with %q", want, problem), func() bool {
		got, err := content(t, s)
		return got == want && (err == nil) == (problem == "") && (err == nil || strings.Contains(err.Error(), problem))
	})
}

// TestTagMoves serves what a tag refers to, and reports when that changes.
func TestTagMoves(t *testing.T) {
	t.Parallel()
	at := ocitest.Serve(t)
	push(t, at, "1.2", "one")
	s := follow(t, at.Host, "1.2", t.TempDir(), nil)
	await(t, s, "one", "")
	<-s.Changes()
	push(t, at, "1.2", "two")
	<-s.Changes()
	await(t, s, "two", "")
	if _, err := s.Open(t.Context(), "csv.wasm", "sha256:"+strings.Repeat("0", 64)); !errors.Is(err, catalog.ErrChanged) {
		t.Errorf("another version: got %v", err)
	}
	if want := "oci://" + at.Host + "/acme/csv:1.2"; s.ID() != want || s.Place(".") != want {
		t.Errorf("got %s, %s", s.ID(), s.Place("."))
	}
}

// TestRange serves the newest version of a range.
func TestRange(t *testing.T) {
	t.Parallel()
	at := ocitest.Serve(t)
	push(t, at, "1.2.9", "nine")
	push(t, at, "1.3.0", "other")
	s := follow(t, at.Host, "~1.2", t.TempDir(), nil)
	await(t, s, "nine", "")
	push(t, at, "1.2.10", "ten")
	await(t, s, "ten", "")
}

// TestAway makes the registry unreachable. What was pulled is still served, also by another process.
func TestAway(t *testing.T) {
	t.Parallel()
	at, folder := ocitest.Serve(t), t.TempDir()
	push(t, at, "1", "one")
	first := follow(t, at.Host, "1", folder, nil)
	await(t, first, "one", "")
	at.Before(func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusInternalServerError)
		return true
	})
	await(t, first, "one", "500")
	host := at.Host
	first.Close()
	at.Close()
	second := follow(t, host, "1", folder, nil)
	if got, _ := content(t, second); got != "one" { // at once
		t.Errorf("got %q", got)
	}
	await(t, second, "one", "what was pulled before")
	if _, err := follow(t, host, "1", t.TempDir(), nil).List(t.Context()); err == nil {
		t.Error("there is a module without a registry, and without a cache")
	}
}

// TestBusy has a registry that asks to be left alone for six seconds. During that time the source asks it nothing, and serves what was pulled before.
// Afterwards the source serves the new module.
func TestBusy(t *testing.T) {
	t.Parallel()
	at := ocitest.Serve(t)
	push(t, at, "1", "one")
	s := follow(t, at.Host, "1", t.TempDir(), nil)
	await(t, s, "one", "")
	push(t, at, "1", "two")
	var refused, next atomic.Int64 // when
	at.Before(func(w http.ResponseWriter, _ *http.Request) bool {
		now := time.Now().UnixMilli()
		if refused.CompareAndSwap(0, now) {
			w.Header().Set("Retry-After", "6")
			w.WriteHeader(http.StatusTooManyRequests)
			return true
		}
		next.CompareAndSwap(0, now)
		return false
	})
	testkit.Until(t, "it is refused", func() bool { return refused.Load() > 0 })
	if got, _ := content(t, s); got != "one" && got != "two" { // it may already have pulled "two" before it was refused
		t.Errorf("got %q", got)
	}
	testkit.Until(t, "it asks again", func() bool { return next.Load() > 0 })
	if after := next.Load() - refused.Load(); after < 6000 {
		t.Errorf("it asks again after %d ms", after)
	}
	await(t, s, "two", "")
}

// TestPinned checks that the registry is not asked for a digest again once its module has been pulled.
func TestPinned(t *testing.T) {
	t.Parallel()
	at, folder := ocitest.Serve(t), t.TempDir()
	one := push(t, at, "1", "one")
	push(t, at, "1", "two")
	for name, which := range map[string]string{"a digest": one.Manifest, "a locked tag": "1"} {
		lock := func(o *registry.Options) { o.Locked = one.Manifest }
		first := follow(t, at.Host, which, folder, lock)
		await(t, first, "one", "")
		first.Close()
		asked := at.Requests.Load()
		second := follow(t, at.Host, which, folder, lock)
		await(t, second, "one", "")
		second.Close()
		if n := at.Requests.Load(); n != asked {
			t.Errorf("%s: the registry was asked %d more times", name, n-asked)
		}
	}
	// A record of what the tag referred to is not used for a locked digest.
	third := follow(t, at.Host, "1", folder, nil)
	await(t, third, "two", "")
	third.Close()
	await(t, follow(t, at.Host, "1", folder, func(o *registry.Options) { o.Locked = one.Manifest }), "one", "")
}

// TestDamaged changes or removes files of the cache. None of the changes is served.
// Proves: No tool takes another's place
func TestDamaged(t *testing.T) {
	t.Parallel()
	at, folder := ocitest.Serve(t), t.TempDir()
	one := push(t, at, "1", "one")
	s := follow(t, at.Host, one.Manifest, folder, nil)
	await(t, s, "one", "")
	file := filepath.Join(folder, strings.TrimPrefix(one.Digest, "sha256:")+".wasm")
	for _, c := range []struct {
		name   string
		damage func() error
	}{
		{"the same length", func() error { return os.WriteFile(file, []byte("two"), 0o600) }},
		{"shorter", func() error { return os.WriteFile(file, nil, 0o600) }},
		{"longer", func() error { return os.WriteFile(file, []byte("one and more"), 0o600) }},
		{"gone", func() error { return os.Remove(file) }},
		{"a folder", func() error { return errors.Join(os.Remove(file), os.Mkdir(file, 0o700)) }},
		{"all of it", func() error { return os.RemoveAll(folder) }},
	} {
		name := c.name
		if err := c.damage(); err != nil {
			t.Fatal(name, err)
		}
		var b []byte
		testkit.Until(t, name, func() bool {
			f, err := s.Open(t.Context(), "csv.wasm", one.Digest)
			if err != nil {
				t.Fatal(name, err)
			}
			defer f.Close()
			b, err = io.ReadAll(f)
			return err == nil
		})
		if string(b) != "one" {
			t.Errorf("%s: got %q", name, b)
		}
		if _, err := os.Stat(file); err != nil {
			t.Errorf("%s: the module is not in the cache again: %v", name, err)
		}
	}
	s.Close()
	// Records that are damaged, or that are about something else, are not used.
	for _, text := range []string{"", "{", "null", `{"reference":"x"}`, strings.Repeat("x", 10_000)} {
		records, err := filepath.Glob(filepath.Join(folder, "source-*.json"))
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range records {
			if err := os.WriteFile(r, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		again := follow(t, at.Host, one.Manifest, folder, nil)
		await(t, again, "one", "")
		again.Close()
	}
}

// TestNoCache serves what it pulls if there is no folder, or if the folder can't be used.
func TestNoCache(t *testing.T) {
	t.Parallel()
	at := ocitest.Serve(t)
	push(t, at, "1", "one")
	file := testkit.Put(t, t.TempDir(), "file", "")
	for _, folder := range []string{"", filepath.Join(file, "cache")} {
		var log testkit.Log
		s := follow(t, at.Host, "1", folder, func(o *registry.Options) { o.Logger = log.Logger(0) })
		await(t, s, "one", "")
		push(t, at, "1", "two"+folder)
		await(t, s, "two"+folder, "")
		push(t, at, "1", "one")
		await(t, s, "one", "")
		s.Close()
		if n := log.Count("modules from registries are not kept on disk"); n != 1 {
			t.Errorf("the log says so %d times: %s", n, log.String())
		}
	}
}

// TestNothingInMemory checks that sources without a cache keep no module in memory, and serve nothing that was not verified while it arrived.
func TestNothingInMemory(t *testing.T) {
	t.Parallel()
	at := ocitest.Serve(t)
	large := strings.Repeat("0123456789abcdef", 1<<16) // 1 MiB
	push(t, at, "1", large)
	cache := registry.OpenCache("", 0)
	before := heap()
	var all []*registry.Source
	for range 64 {
		all = append(all, follow(t, at.Host, "1", "", func(o *registry.Options) { o.Cache, o.Poll = cache, time.Hour }))
	}
	var l *catalog.Listing
	for _, s := range all {
		var err error
		if l, err = s.List(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if grown := heap() - before; grown > 32<<20 {
		t.Errorf("64 sources of 1 MiB hold %d bytes", grown)
	}
	e := l.Entries[0]
	for range 5 { // more than may be pulled at a time: closing a module that was not read to its end frees its place
		f, err := all[0].Open(t.Context(), e.ID, e.Version)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := f.Read(make([]byte, 10)); err != nil {
			t.Fatal(err)
		}
		f.Close()
	}
	if got, _ := content(t, all[1]); got != large {
		t.Errorf("got %d bytes", len(got))
	}
	at.Before(func(w http.ResponseWriter, q *http.Request) bool {
		if strings.Contains(q.URL.Path, "/blobs/") {
			w.Header().Set("Content-Length", fmt.Sprint(len(large)))
			io.WriteString(w, strings.Repeat("x", len(large)))
			return true
		}
		return false
	})
	f, err := all[2].Open(t.Context(), e.ID, e.Version)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var passing *catalog.PassingError
	if _, err = io.Copy(io.Discard, f); !errors.As(err, &passing) || !strings.Contains(err.Error(), "doesn't match its digest") {
		t.Errorf("a module that has changed since: got %v", err)
	}
}

func heap() int64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

// TestBounded checks that the oldest modules are removed, but none that is served.
func TestBounded(t *testing.T) {
	t.Parallel()
	at, folder := ocitest.Serve(t), t.TempDir()
	cache := registry.OpenCache(folder, 250)
	module := func(i int) string { return strings.Repeat(fmt.Sprint(i%10), 100) }
	push(t, at, "stays", module(0))
	stays := follow(t, at.Host, "stays", "", func(o *registry.Options) { o.Cache = cache })
	await(t, stays, module(0), "")
	moves := follow(t, at.Host, "moves", "", func(o *registry.Options) { o.Cache = cache })
	for i := 1; i < 6; i++ {
		push(t, at, "moves", module(i))
		await(t, moves, module(i), "")
	}
	testkit.Until(t, "two modules at most", func() bool {
		files, err := filepath.Glob(filepath.Join(folder, "*.wasm"))
		return err == nil && len(files) <= 2
	})
	if left, _ := filepath.Glob(filepath.Join(folder, ".pull-*")); len(left) > 0 {
		t.Errorf("unfinished files are left: %q", left)
	}
	await(t, stays, module(0), "")
	// What a killed process left behind is removed at the next start and the next pull. What another process may still be writing stays.
	other, killed := testkit.Put(t, folder, ".pull-1", "x"), ""
	abandon := func() {
		killed = testkit.Put(t, folder, ".pull-2", "x")
		if at := time.Now().Add(-16 * time.Minute); os.Chtimes(killed, at, at) != nil {
			t.Fatal("no times")
		}
	}
	gone := func() bool { _, err := os.Stat(killed); return errors.Is(err, os.ErrNotExist) }
	abandon()
	if registry.OpenCache(folder, 250); !gone() {
		t.Error("an unfinished file is left after a start")
	}
	abandon()
	push(t, at, "moves", module(6))
	testkit.Until(t, "no unfinished file", gone)
	if _, err := os.Stat(other); err != nil {
		t.Error(err)
	}
}

// TestWrongArtifact keeps what is served when a tag refers to something that is not an artifact of a tool.
func TestWrongArtifact(t *testing.T) {
	t.Parallel()
	at := ocitest.Serve(t)
	push(t, at, "1", "one")
	s := follow(t, at.Host, "1", t.TempDir(), nil)
	await(t, s, "one", "")
	var lies atomic.Bool
	at.Before(func(w http.ResponseWriter, q *http.Request) bool {
		if lies.Load() && strings.Contains(q.URL.Path, "/blobs/") {
			io.WriteString(w, "xxx")
			return true
		}
		return false
	})
	lies.Store(true)
	push(t, at, "1", "two") // as far as Exists says, the layer is there already
	await(t, s, "one", "doesn't match its digest")
	lies.Store(false)
}

// TestHangs has a registry that never answers: neither a listing nor Close waits for it.
func TestHangs(t *testing.T) {
	t.Parallel()
	at := ocitest.Serve(t)
	at.Before(func(_ http.ResponseWriter, q *http.Request) bool { <-q.Context().Done(); return true })
	s := follow(t, at.Host, "1", t.TempDir(), nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.List(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	s.Close()
}

// TestHostileBesideGood has sources of a registry whose modules never end, so they take up all they can. A source of another registry is served
// meanwhile.
func TestHostileBesideGood(t *testing.T) {
	t.Parallel()
	evil, good := ocitest.Serve(t), ocitest.Serve(t)
	var hanging atomic.Int64
	push(t, evil, "1", "one")
	push(t, good, "1", "good")
	evil.Before(func(w http.ResponseWriter, q *http.Request) bool {
		if !strings.Contains(q.URL.Path, "/blobs/") {
			return false
		}
		w.Header().Set("Content-Length", "3")
		io.WriteString(w, "o")
		w.(http.Flusher).Flush()
		hanging.Add(1)
		<-q.Context().Done()
		return true
	})
	cache := registry.OpenCache(t.TempDir(), 0)
	share := func(o *registry.Options) { o.Cache = cache }
	for range 5 {
		follow(t, evil.Host, "1", "", share)
	}
	testkit.Until(t, "two pulls that hang", func() bool { return hanging.Load() == 2 })
	s := follow(t, good.Host, "1", "", share)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := s.List(ctx); err != nil {
		t.Fatal(err)
	}
	await(t, s, "good", "")
	if n := hanging.Load(); n != 2 {
		t.Errorf("%d pulls of one registry hang", n)
	}
}

// newPair writes the files of a key.
func newPair(t *testing.T) (private *signature.Key, public string) {
	t.Helper()
	file, public := certtest.KeyFiles(t, t.TempDir(), certtest.NewKey(t))
	private, err := signature.ReadKey(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	return private, public
}

// TestSigned serves what an accepted signer has signed. The source still serves that after the tag has been moved to an unsigned artifact.
func TestSigned(t *testing.T) {
	t.Parallel()
	at := ocitest.Serve(t)
	key, public := newPair(t)
	_, others := newPair(t)
	r, err := oci.Open(at.Host, noKeys(t))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	sign := func(a *oci.Artifact) {
		if _, err := r.Sign(t.Context(), oci.Reference{Host: at.Host, Repository: "acme/csv", Digest: a.Manifest}, key); err != nil {
			t.Fatal(err)
		}
	}
	trusting := func(key, minimum string) func(*registry.Options) {
		return func(o *registry.Options) {
			trust, err := signature.Open([]signature.Signer{{Key: key}})
			if err != nil {
				t.Fatal(err)
			}
			o.Registry.Trust, o.Registry.Minimum = trust, minimum
		}
	}
	folder := t.TempDir()
	one := push(t, at, "1.2", "one")
	// What a source had from the same registry without requiring a signature is not accepted by a source that requires one.
	anybody := follow(t, at.Host, "1.2", folder, nil)
	await(t, anybody, "one", "")
	anybody.Close()
	s := follow(t, at.Host, "1.2", folder, trusting(public, ""))
	await(t, s, "", "it is not signed")
	sign(one)
	await(t, s, "one", "")
	two := push(t, at, "1.2", "two")
	await(t, s, "one", "it is not signed: the registry has no signature of "+two.Manifest)
	sign(two)
	await(t, s, "two", "")
	s.Close()

	// While the registry is unreachable, what was verified is served for the same signers, and nothing for others.
	at.Before(func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusForbidden)
		return true
	})
	await(t, follow(t, at.Host, "1.2", folder, trusting(public, "")), "two", "does not allow it")
	await(t, follow(t, at.Host, "1.2", folder, trusting(others, "")), "", "does not allow it")
	await(t, follow(t, at.Host, "1.2", folder, trusting(public, "1.0.0")), "", "does not allow it")
	at.Before(nil)
	await(t, follow(t, at.Host, "1.2", t.TempDir(), trusting(others, "")), "", "it was not made with the key "+others)
	await(t, follow(t, at.Host, "1.2", t.TempDir(), trusting(public, "1.0.0")), "", "it has no version")

	// A digest needs no signature.
	three := push(t, at, "3", "three")
	await(t, follow(t, at.Host, three.Manifest, t.TempDir(), trusting(public, "1.0.0")), "three", "")
	await(t, follow(t, at.Host, "3", t.TempDir(), func(o *registry.Options) {
		trusting(public, "1.0.0")(o)
		o.Locked = three.Manifest
	}), "three", "")
}
