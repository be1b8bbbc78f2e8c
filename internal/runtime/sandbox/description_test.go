package sandbox_test

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/toolsrv/toolsrv/internal/runtime/abi1"
	"github.com/toolsrv/toolsrv/internal/runtime/sandbox"
	"github.com/toolsrv/toolsrv/internal/testkit"
)

// TestDescribed lets a module describe itself. A later engine then knows the description, unless the cache is damaged or the module differs.
func TestDescribed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	stages := testkit.Fixture(t, "wat/good/stages")
	with := func(dir string, module []byte, use func(*sandbox.Program)) {
		t.Helper()
		e, err := sandbox.New(t.Context(), sandbox.Config{Imports: abi1.Sets(), CacheDir: dir})
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close(context.Background())
		p, err := e.Load(module, abi1.Modules()...)
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		use(p)
	}
	var said []byte
	with(dir, stages, func(p *sandbox.Program) {
		if got := p.Described(); got != nil {
			t.Errorf("before Describe: got %q", got)
		}
		var err error
		if said, err = p.Describe(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := p.Described(); !bytes.Equal(got, said) {
			t.Errorf("after Describe: got %q, want %q", got, said)
		}
		other, err := p.With([]byte(`{"a":1}`))
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		if got := other.Described(); got != nil {
			t.Errorf("with settings: got %q", got)
		}
	})
	with(dir, stages, func(p *sandbox.Program) {
		if got := p.Described(); !bytes.Equal(got, said) {
			t.Errorf("in a later engine: got %q, want %q", got, said)
		}
	})
	with("", stages, func(p *sandbox.Program) {
		if got := p.Described(); got != nil {
			t.Errorf("without a cache: got %q", got)
		}
	})
	with(dir, testkit.Fixture(t, "wat/hostile/describe_spin"), func(p *sandbox.Program) {
		if got := p.Described(); got != nil {
			t.Errorf("another module: got %q", got)
		}
	})
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if path := filepath.Join(dir, entry.Name()); entry.Type().IsRegular() {
			content, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			content[len(content)-1] ^= 1
			if err := os.WriteFile(path, content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	with(dir, stages, func(p *sandbox.Program) {
		if got := p.Described(); got != nil {
			t.Errorf("from a damaged cache: got %q", got)
		}
		if got, err := p.Describe(t.Context()); err != nil || !bytes.Equal(got, said) {
			t.Errorf("from a damaged cache: described as %q, %v, want %q", got, err, said)
		}
		if got := p.Described(); !bytes.Equal(got, said) {
			t.Errorf("once it was mended: got %q, want %q", got, said)
		}
	})
}
