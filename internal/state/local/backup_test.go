package local_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/state/local"
)

// backup writes a copy of a store into a file.
func backup(t *testing.T, s *local.Store) (path string) {
	t.Helper()
	var b bytes.Buffer
	n, err := s.WriteTo(&b)
	if err != nil || n != int64(b.Len()) {
		t.Fatalf("wrote %d of %d bytes, %v", n, b.Len(), err)
	}
	path = filepath.Join(t.TempDir(), "backup.db")
	write(t, path, b.Bytes())
	return path
}

// TestBackup copies a state while others write. Each copy is complete, and shows one moment.
// Proves: State is whole and apart
func TestBackup(t *testing.T) {
	t.Parallel()
	store := open(t, t.TempDir())
	s, ctx := store.Space("a"), t.Context()
	stop := make(chan struct{})
	var writers sync.WaitGroup
	writers.Go(func() {
		for i := 1; ; i++ { // the second key is never ahead of the first
			for _, key := range []string{"first", "second"} {
				if _, err := s.Set(ctx, key, fmt.Appendf(nil, "%08d", i), state.Any, state.SetOptions{}); err != nil {
					t.Error(err)
					return
				}
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	})
	writers.Go(func() {
		for i := 0; ; i++ {
			if _, err := s.Set(ctx, fmt.Sprint("large", i%5), make([]byte, 10<<10*(i%7)), state.Any, state.SetOptions{}); err != nil {
				t.Error(err)
				return
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	})
	for range 10 {
		path := backup(t, store)
		dir := t.TempDir()
		if kept, err := local.Restore(path, dir, local.Options{}, nil); err != nil || kept != "" {
			t.Fatalf("restore: %q, %v", kept, err)
		}
		copied := open(t, dir)
		value := func(key string) string {
			e, _, err := copied.Space("a").Get(ctx, key, state.MaxValue)
			if err != nil {
				t.Error(err)
			}
			return string(e.Value)
		}
		if first, second := value("first"), value("second"); second > first {
			t.Errorf("the second key has %s, the first one %s", second, first)
		}
		if err := copied.Close(); err != nil {
			t.Error(err)
		}
	}
	close(stop)
	writers.Wait()
	if err := store.Close(); err != nil {
		t.Error(err)
	}
	if _, err := store.WriteTo(&bytes.Buffer{}); err == nil {
		t.Error("a closed state was copied")
	}
}

// TestRestore puts a backup in place, and keeps the previous file, more than once within a second.
func TestRestore(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	filled := func(dir, value string) *local.Store {
		s := open(t, dir)
		if _, err := s.Space("a").Set(ctx, "k", []byte(value), state.Any, state.SetOptions{}); err != nil {
			t.Fatal(err)
		}
		return s
	}
	from := filled(t.TempDir(), "kept")
	path := backup(t, from)
	if err := from.Close(); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	if err := filled(dir, "before").Close(); err != nil {
		t.Fatal(err)
	}
	before, err := os.ReadFile(filepath.Join(dir, fileName))
	if err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(path, link); err != nil {
		link = path // links may need a privilege there
	}
	first, err := local.Restore(link, dir, local.Options{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(first); err != nil || !bytes.Equal(got, before) {
		t.Errorf("the kept file is not the previous one: %v", err)
	}
	store := open(t, dir)
	if e, _, err := store.Space("a").Get(ctx, "k", 10); string(e.Value) != "kept" || err != nil {
		t.Errorf("got %q, %v", e.Value, err)
	}
	if _, err := local.Restore(path, dir, local.Options{}, nil); !errors.Is(err, local.ErrLocked) || !strings.Contains(err.Error(), "such as a server") {
		t.Errorf("restore while a server runs: %v", err)
	}
	if _, err := local.OpenFile(filepath.Join(dir, fileName), nil); !errors.Is(err, local.ErrLocked) {
		t.Errorf("read while a server runs: %v", err)
	}
	if _, err := local.Restore(filepath.Join(dir, fileName), t.TempDir(), local.Options{}, nil); !errors.Is(err, local.ErrLocked) {
		t.Errorf("restore from the file of a running server: %v", err)
	}
	if err := store.Close(); err != nil {
		t.Fatal(err)
	}
	second, err := local.Restore(path, dir, local.Options{}, nil)
	if err != nil || second == first {
		t.Errorf("the second time: %q, %v", second, err)
	}
	if _, err := local.Restore(filepath.Join(dir, fileName), dir, local.Options{}, nil); err == nil || !strings.Contains(err.Error(), "is the state itself") {
		t.Errorf("restore from itself: %v", err)
	}
	write(t, filepath.Join(dir, fileName), []byte("damaged")) // a damaged state must not prevent a restore
	if third, err := local.Restore(path, dir, local.Options{}, nil); err != nil || third == "" {
		t.Errorf("in place of a damaged one: %q, %v", third, err)
	}
	// A note is in the restored state and in no other. If it can't be written, nothing is restored.
	note := func(s *local.Store) error {
		_, err := s.Space("notes").Set(ctx, "restored", nil, state.Any, state.SetOptions{})
		return err
	}
	noted := t.TempDir()
	if _, err := local.Restore(path, noted, local.Options{}, note); err != nil {
		t.Fatal(err)
	}
	for at, want := range map[string]bool{noted: true, dir: false} {
		store := open(t, at)
		if _, ok, err := store.Space("notes").Get(ctx, "restored", 10); ok != want || err != nil {
			t.Errorf("noted: got %t, %v, want %t", ok, err, want)
		}
		if err := store.Close(); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := local.Restore(path, noted, local.Options{}, func(*local.Store) error { return errors.New("there is no room") }); err == nil || !strings.Contains(err.Error(), "no room") {
		t.Errorf("a note that fails: %v", err)
	}
	if files, err := os.ReadDir(noted); err != nil || len(files) != 1 {
		t.Errorf("got %v, %v, want the state alone", files, err)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 4 {
		t.Errorf("got %v, %v, want the state and three before it", files, err)
	}
}

// TestRestoreRefused leaves everything unchanged if a backup is not good.
func TestRestoreRefused(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	source := open(t, t.TempDir())
	newer, err := state.Encode(2, "of a later version")
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		if _, err := source.Space("tokens").Set(ctx, fmt.Sprintf("%03d", i), append(newer, make([]byte, 1000)...), state.Any, state.SetOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	path := backup(t, source)
	if err := source.Close(); err != nil {
		t.Fatal(err)
	}
	good, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	bent := bytes.Clone(good)
	i := bytes.Index(bent, []byte("of a later version"))
	bent[i] ^= 1
	known := map[string]byte{"tokens": 2}
	for _, test := range []struct {
		name    string
		content []byte
		forms   map[string]byte
		want    string
	}{
		{"a state of a newer version", good, map[string]byte{"tokens": 1}, "is not a state that this version can read: a record was written by a newer version of toolsrv: its form is 2, but this version reads 1 (\"000\" of tokens)"},
		{"cut off", good[:len(good)/2], known, "is damaged"},
		{"one bit changed", bent, known, "is damaged"},
		{"empty", nil, known, "is damaged (it is empty)"},
		{"another file", []byte("not a state"), known, "is not a state that this version can read"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			if err := open(t, dir).Close(); err != nil {
				t.Fatal(err)
			}
			before, err := os.ReadFile(filepath.Join(dir, fileName))
			if err != nil {
				t.Fatal(err)
			}
			bad := filepath.Join(t.TempDir(), "bad.db")
			write(t, bad, test.content)
			if _, err := local.Restore(bad, dir, local.Options{Forms: test.forms}, nil); err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), bad) {
				t.Errorf("restore: got %v, want %q", err, test.want)
			}
			if now, err := os.ReadFile(bad); err != nil || !bytes.Equal(now, test.content) {
				t.Errorf("the backup was changed: %v", err)
			}
			files, err := os.ReadDir(dir)
			if now, _ := os.ReadFile(filepath.Join(dir, fileName)); err != nil || len(files) != 1 || !bytes.Equal(now, before) {
				t.Errorf("the state was changed: %v, %v", files, err)
			}
			write(t, filepath.Join(dir, fileName), test.content)
			if _, err := local.Open(dir, local.Options{Forms: test.forms}); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("open: got %v, want %q", err, test.want)
			}
			if now, err := os.ReadFile(filepath.Join(dir, fileName)); err != nil || !bytes.Equal(now, test.content) {
				t.Errorf("the state was changed: %v", err)
			}
		})
	}
	if _, err := local.OpenFile(filepath.Join(t.TempDir(), "missing"), nil); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	f, err := local.OpenFile(path, known)
	if err != nil {
		t.Fatal(err)
	}
	if want := []local.Content{{Space: "tokens", Usage: state.Usage{Entries: 100, Bytes: 100 * (3 + int64(len(newer)) + 1000 + state.Overhead)}}}; !reflect.DeepEqual(f.Contents, want) || f.Size != int64(len(good)) {
		t.Errorf("got %d bytes with %+v, want %d with %+v", f.Size, f.Contents, len(good), want)
	}
	if err := f.Close(); err != nil {
		t.Error(err)
	}
}
