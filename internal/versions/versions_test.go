package versions_test

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/state/local"
	"github.com/toolsrv/toolsrv/internal/state/memory"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/internal/versions"
)

func digestOf(content string) string {
	sum := sha256.Sum256([]byte(content))
	return hex.EncodeToString(sum[:])
}

// open opens a store with room for some blocks of 4 KiB.
func open(t *testing.T, dir string, blocks int64, space state.Space) *versions.Store {
	t.Helper()
	s, err := versions.Open(t.Context(), versions.Options{Directory: dir, MakeDirectory: local.MakeDirectory, Space: space, Bytes: func() int64 { return blocks << 12 }})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func keep(s *versions.Store, f versions.File, content string) error {
	return s.Keep(f, digestOf(content), int64(len(content)), strings.NewReader(content))
}

// contents returns the stored versions of a file, the newest first.
func contents(t *testing.T, s *versions.Store, f versions.File) string {
	t.Helper()
	all, err := s.Of(f)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, v := range all {
		content, err := s.Read(f, v.Digest)
		if err != nil || v.Size != int64(len(content)) {
			t.Errorf("version %+v: got %q, %v", v, content, err)
		}
		list = append(list, string(content))
	}
	return strings.Join(list, " ")
}

var (
	file  = versions.File{Source: "/srv/tools", Name: "math/add.wasm"}
	other = versions.File{Source: "/srv/tools", Name: "math/ADD.wasm"}
)

// keepAll stores contents, each later than the one before.
func keepAll(t *testing.T, s *versions.Store, f versions.File, all ...string) {
	t.Helper()
	for _, content := range all {
		if err := keep(s, f, content); err != nil {
			t.Fatal(err)
		}
		later(t, s, f)
	}
}

// later waits until the clock of versions has moved on.
func later(t *testing.T, s *versions.Store, f versions.File) {
	t.Helper()
	all, err := s.Of(f)
	if err != nil || len(all) == 0 {
		t.Fatal(all, err)
	}
	for ms := all[0].Since.UnixMilli(); time.Now().UnixMilli() <= ms; {
	}
}

// TestKeep checks that the last five versions of a file are kept, also for a store that is opened later, and separately for each file.
func TestKeep(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "state")
	s := open(t, dir, 100, nil)
	if got := contents(t, s, file); got != "" {
		t.Errorf("got %s, want no versions yet", got)
	}
	if _, err := os.Stat(dir); err == nil {
		t.Error("the directory was made although nothing was stored")
	}
	keepAll(t, s, file, "a", "b", "c", "b", "d", "e", "f", "g")
	keepAll(t, s, other, "a", "")
	long := versions.File{Source: "/srv/tools", Name: strings.Repeat("long/", 80) + "x.wasm"}
	keepAll(t, s, long, "a")
	odd := versions.File{Source: "/srv/tools", Name: "ä b%/..\\x:\x00"}
	keepAll(t, s, odd, "odd")
	for range 2 {
		if got := contents(t, s, file); got != "g f e d b" {
			t.Errorf("got %s", got)
		}
		if got := contents(t, s, other); got != " a" {
			t.Errorf("got %q", got)
		}
		if got := contents(t, s, long) + contents(t, s, odd); got != "aodd" {
			t.Errorf("got %q", got)
		}
		if all, err := s.Files("/srv/tools"); fmt.Sprint(all, err) != fmt.Sprint([]versions.File{other, file, odd}, nil) {
			t.Errorf("got %q, %v", all, err)
		}
		if all, err := s.Files("/srv"); len(all) > 0 || err != nil {
			t.Errorf("got %q, %v", all, err)
		}
		testkit.Put(t, dir, "versions/.new-left", "half")
		testkit.Put(t, dir, "versions/foreign", "x")
		s = open(t, dir, 100, nil)
	}
	if err := s.Look(); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "versions", ".new-left")); err == nil {
		t.Error("an incomplete version is still there")
	}
}

// TestKeepRefuses checks that a content is not stored if it does not match its digest, is too large, or has no directory to be stored in.
func TestKeepRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, 100, nil)
	for name, c := range map[string]struct {
		digest, content string
		size            int64
	}{
		"another content": {digestOf("a"), "b", 1},
		"more":            {digestOf("ab"), "ab", 1},
		"less":            {digestOf("ab"), "ab", 3},
		"too large":       {digestOf("ab"), "ab", versions.MaxSize + 1},
		"less than none":  {digestOf("ab"), "ab", -1},
	} {
		if err := s.Keep(file, c.digest, c.size, strings.NewReader(c.content)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	if err := s.Keep(file, digestOf("a"), 1, io.MultiReader(strings.NewReader("a"), failing{})); err == nil {
		t.Error("a reader that fails: no error")
	}
	if got := contents(t, s, file); got != "" {
		t.Errorf("got %s", got)
	}
	if entries, err := os.ReadDir(filepath.Join(dir, "versions")); err != nil || len(entries) > 0 {
		t.Errorf("got %v, %v", entries, err)
	}
	for _, off := range []*versions.Store{open(t, "", 100, nil), open(t, dir, 0, nil)} {
		if err := keep(off, file, "a"); !errors.Is(err, versions.ErrOff) {
			t.Errorf("got %v", err)
		}
	}
	blocked := open(t, filepath.Join(testkit.Put(t, dir, "file", ""), "below"), 100, nil)
	if err := keep(blocked, file, "a"); err == nil {
		t.Error("the directory can't be made, but Keep returns no error")
	}
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("the disk is gone") }

// TestBytes checks that old versions make room for newer ones, except the last one of an existing file and one that was rolled back to.
func TestBytes(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir(), 4, memory.New().Space("rollbacks"))
	gone := versions.File{Source: "/srv/tools", Name: "gone.wasm"}
	keepAll(t, s, gone, "gone")
	keepAll(t, s, file, "a", "b", "c")
	if err := s.Roll(t.Context(), versions.Rollback{File: file, Over: digestOf("c"), Digest: digestOf("a")}); err != nil {
		t.Fatal(err)
	}
	keepAll(t, s, other, "x")
	if got := contents(t, s, file); got != "c a" {
		t.Errorf("got %s, want the newest version, and the one that was rolled back to", got)
	}
	s.SetLive([]versions.File{file, other})
	keepAll(t, s, other, "y") // in place of the removed version
	if got := contents(t, s, gone) + contents(t, s, other); got != "y x" {
		t.Errorf("got %s", got)
	}
	if err := keep(s, versions.File{Source: "/srv/tools", Name: "new.wasm"}, strings.Repeat("z", 3<<12)); !errors.Is(err, versions.ErrFull) {
		t.Errorf("got %v", err)
	}
	if got := contents(t, s, file) + " " + contents(t, s, other); got != "c a y" {
		t.Errorf("got %s", got)
	}
}

// TestDamaged checks that a damaged version is never returned.
func TestDamaged(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(path string) error{
		"changed":  func(path string) error { return os.WriteFile(path, []byte("b"), 0o600) },
		"emptied":  func(path string) error { return os.Truncate(path, 0) },
		"longer":   func(path string) error { return os.WriteFile(path, []byte("aa"), 0o600) },
		"enormous": func(path string) error { return os.Truncate(path, 10<<30) },
		"gone":     os.Remove,
		"a folder": func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) },
	} {
		dir := t.TempDir()
		s := open(t, dir, 100, memory.New().Space("rollbacks"))
		keepAll(t, s, file, "a")
		if err := s.Roll(t.Context(), versions.Rollback{File: file, Over: digestOf("c"), Digest: digestOf("a")}); err != nil {
			t.Fatal(err)
		}
		entries, err := os.ReadDir(filepath.Join(dir, "versions"))
		if err != nil || len(entries) != 1 {
			t.Fatal(entries, err)
		}
		if err := change(filepath.Join(dir, "versions", entries[0].Name())); err != nil {
			t.Fatal(err)
		}
		if content, err := s.Read(file, digestOf("a")); err == nil {
			t.Errorf("%s: got %q", name, content)
		}
		if content, err := s.Instead(t.Context(), file.Source, file.Name, []byte("c")); err == nil {
			t.Errorf("%s: got %q in place of the file", name, content)
		}
	}
}

// TestRollback checks that a rollback holds until the source has other content, even across a restart.
func TestRollback(t *testing.T) {
	t.Parallel()
	dir, store := t.TempDir(), memory.New()
	s := open(t, dir, 100, store.Space("rollbacks"))
	keepAll(t, s, file, "a", "b")
	if err := s.Roll(t.Context(), versions.Rollback{File: file, Over: digestOf("b"), Digest: digestOf("x")}); !errors.Is(err, versions.ErrUnknown) {
		t.Errorf("a version that is not kept: got %v", err)
	}
	if err := s.Roll(t.Context(), versions.Rollback{File: file, Over: digestOf("b"), Digest: digestOf("a"), By: "ann", Reason: "wrong"}); err != nil {
		t.Fatal(err)
	}
	instead := func(of versions.File, content, want string) {
		t.Helper()
		got, err := s.Instead(t.Context(), of.Source, of.Name, []byte(content))
		if err != nil || string(got) != want {
			t.Errorf("%s in place of %s: got %v, want %s", got, content, err, want)
		}
	}
	for range 2 {
		instead(file, "b", "a")
		instead(other, "b", "b")
		if r, ok := s.RolledBack(file); !ok || r.By != "ann" || r.Reason != "wrong" {
			t.Errorf("got %+v", r)
		}
		s = open(t, dir, 100, store.Space("rollbacks"))
	}
	instead(file, "c", "c")
	instead(file, "b", "b")
	s = open(t, dir, 100, store.Space("rollbacks"))
	instead(file, "b", "b")
	if was, err := s.Unroll(t.Context(), file); was || err != nil {
		t.Errorf("got %t, %v", was, err)
	}
	if err := s.Roll(t.Context(), versions.Rollback{File: file, Over: digestOf("b"), Digest: digestOf("a")}); err != nil {
		t.Fatal(err)
	}
	if was, err := s.Unroll(t.Context(), file); !was || err != nil {
		t.Errorf("got %t, %v", was, err)
	}
	instead(file, "b", "b")
}

// TestAfterRollback checks that, after new content has come, the next rollback goes to the version that the file was rolled back to, and not to the
// bad one that it was rolled back from.
func TestAfterRollback(t *testing.T) {
	t.Parallel()
	for name, come := range map[string]func(s *versions.Store) error{
		"the file changes": func(s *versions.Store) error {
			_, err := s.Instead(t.Context(), file.Source, file.Name, []byte("next"))
			return err
		},
		"a file is put": func(s *versions.Store) error {
			_, err := s.Unroll(t.Context(), file)
			return err
		},
	} {
		for _, opened := range []string{"before", "anew"} {
			dir, store := t.TempDir(), memory.New()
			s := open(t, dir, 100, store.Space(versions.Space))
			keepAll(t, s, file, "older", "good", "bad")
			if err := s.Roll(t.Context(), versions.Rollback{File: file, Over: digestOf("bad"), Digest: digestOf("good")}); err != nil {
				t.Fatal(err)
			}
			if opened == "anew" {
				s = open(t, dir, 100, store.Space(versions.Space))
			}
			if err := come(s); err != nil {
				t.Fatal(err)
			}
			keepAll(t, s, file, "next")
			if got := contents(t, s, file); got != "next good bad older" {
				t.Errorf("%s, opened %s: got %s", name, opened, got)
			}
			if got := contents(t, open(t, dir, 100, nil), file); got != "next good bad older" {
				t.Errorf("%s, opened %s, read again: got %s", name, opened, got)
			}
		}
	}
}

// TestForeignRecord checks that a record is refused if it names something other than a version, such as a file elsewhere.
func TestForeignRecord(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"../state.db", "", "/etc/passwd", "000000000000-" + digestOf("b") + "-0123456789abcdef-x"} {
		space := memory.New().Space("rollbacks")
		record, err := state.Encode(versions.Form, []versions.Rollback{{File: file, Over: digestOf("b"), Digest: digestOf("a"), Kept: name}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := space.Set(t.Context(), "all", record, state.Any, state.SetOptions{}); err != nil {
			t.Fatal(err)
		}
		s, err := versions.Open(t.Context(), versions.Options{Directory: t.TempDir(), Space: space, Bytes: func() int64 { return 1 << 20 }})
		if err == nil {
			t.Errorf("%q: no error", name)
		}
		if _, ok := s.RolledBack(file); ok {
			t.Errorf("%q is rolled back to", name)
		}
	}
}

// TestTogether stores, reads and rolls back versions from many goroutines.
func TestTogether(t *testing.T) {
	t.Parallel()
	s := open(t, t.TempDir(), 6, memory.New().Space("rollbacks"))
	keepAll(t, s, file, "a", "b")
	var all sync.WaitGroup
	for i := range 4 {
		all.Go(func() {
			for n := range 20 {
				_ = keep(s, other, fmt.Sprint(i, n))
				_ = s.Roll(context.Background(), versions.Rollback{File: file, Over: digestOf("b"), Digest: digestOf("a")})
				if content, err := s.Instead(context.Background(), file.Source, file.Name, []byte("b")); err != nil || string(content) != "a" && string(content) != "b" {
					t.Errorf("got %q, %v", content, err)
				}
				_, _ = s.Unroll(context.Background(), file)
				_, _ = s.Of(other)
			}
		})
	}
	all.Wait()
}

// TestAgain stores a version again that was served before. It becomes the newest version again, so that a rollback of the next one goes back to
// it, and older ones are removed first. A damaged version is stored again.
func TestAgain(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, dir, 100, memory.New().Space(versions.Space))
	keepAll(t, s, file, "good", "bad", "good", "worse")
	if got := contents(t, s, file); got != "worse good bad" {
		t.Errorf("the second version is not the one that was served just before: got %s", got)
	}
	keepAll(t, s, file, "c", "d", "good", "e")
	if got := contents(t, s, file); got != "e good d c worse" {
		t.Errorf("the version that was served last has gone: got %s", got)
	}
	if err := s.Roll(t.Context(), versions.Rollback{File: file, Over: digestOf("e"), Digest: digestOf("c")}); err != nil {
		t.Fatal(err)
	}
	keepAll(t, s, file, "c") // the version that is served
	if got := contents(t, open(t, dir, 100, nil), file); got != "e good d c worse" {
		t.Errorf("a rollback is taken for a new version: got %s", got)
	}
	for _, damage := range []func(path string) error{os.Remove, func(path string) error { return os.WriteFile(path, []byte("x"), 0o600) }} {
		found, err := filepath.Glob(filepath.Join(dir, "versions", "*"+digestOf("worse")+"*"))
		if err != nil || len(found) != 1 {
			t.Fatal(found, err)
		}
		if err := damage(found[0]); err != nil {
			t.Fatal(err)
		}
		keepAll(t, s, file, "worse", "e")
		if got := contents(t, s, file); got != "e worse good d c" {
			t.Errorf("after damage: got %s", got)
		}
	}
}
