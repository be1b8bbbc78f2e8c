//go:build unix

package local_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/toolsrv/toolsrv/internal/state"
	"github.com/toolsrv/toolsrv/internal/state/local"
)

// TestFigures counts writes, including those that change nothing because another write was first, and those that fail.
func TestFigures(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	d := local.Defer(directory, local.Options{})
	defer d.Close()
	if f := d.Figures(); f.Written.Count != 0 || f.Bytes != 0 {
		t.Errorf("before anything is kept: %+v", f)
	}
	s := d.Space("a")
	for i := range 3 {
		if _, err := s.Set(t.Context(), "k", []byte{byte(i)}, state.Any, state.SetOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Set(t.Context(), "k", nil, state.Absent, state.SetOptions{}); err == nil {
		t.Fatal("a key that exists is said to be absent")
	}
	path := filepath.Join(directory, local.FileName)
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	f := d.Figures()
	if f.Written.Count != 4 || f.Written.Took <= 0 || f.Failed != 0 || f.Bytes != info.Size() {
		t.Errorf("got %+v, want 4 writes, and a file of %d bytes", f, info.Size())
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Set(t.Context(), "k", nil, state.Any, state.SetOptions{}); err == nil {
		t.Fatal("something was kept in a file that is gone")
	}
	if f := d.Figures(); f.Written.Count != 4 || f.Failed != 1 || f.Bytes != 0 {
		t.Errorf("once the file is gone: %+v", f)
	}
}
