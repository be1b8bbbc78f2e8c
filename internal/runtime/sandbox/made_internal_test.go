package sandbox

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/toolsrv/toolsrv/internal/runtime/abi1"
	"github.com/toolsrv/toolsrv/internal/runtime/wasmbin"
	"github.com/toolsrv/toolsrv/internal/testkit"
	"github.com/toolsrv/toolsrv/runtime/limits"
)

// TestMadeApart compares modules made of an engine and a separate bundle with modules that contain both. They differ only in how their
// digests are made.
func TestMadeApart(t *testing.T) {
	t.Parallel()
	e, bare := poolEngine(t, Config{Paranoid: true}, "good/engine")
	engine, err := wasmbin.Parse(testkit.Fixture(t, "wat/good/engine"))
	if err != nil {
		t.Fatal(err)
	}
	load := func(parsed *wasmbin.Module, bundle []byte) (*Program, error) {
		p, err := e.LoadAs(parsed, Loading{Imports: abi1.Modules(), Bundle: bundle})
		if err == nil {
			t.Cleanup(func() { p.Close() })
		}
		return p, err
	}
	digests := map[string]bool{}
	for k := range byte(5) {
		made, err := load(engine, []byte{'a' + k, k, k / 2, 0})
		if err != nil {
			t.Fatal(err)
		}
		digests[made.Digest()] = true
		if got, want := peek(t, made, 112), []byte{'a' + k, k, k / 2, 0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0}; string(got) != string(want) {
			t.Errorf("tool %d: got % x, want % x", k, got, want)
		}
		if whole := loadInternal(t, e, scripted(t, "engine", 'a'+k, k, k/2, 0)); whole.module != made.module || whole.Digest() == made.Digest() {
			t.Errorf("tool %d: the module in one piece is a different one, or has the same digest %s", k, made.Digest())
		}
		if made.module.code != bare.module.code {
			t.Errorf("tool %d has code of its own", k)
		}
	}
	if len(digests) != 5 {
		t.Errorf("got %d digests of 5 tools", len(digests))
	}
	sources := e.SourceUse().Held
	for name, c := range map[string]struct {
		module string
		bundle []byte
		says   string
	}{
		"no engine": {"wat/good/echo", []byte("x"), "does not export the address toolsrv_bundle"},
		"too large": {"wat/good/engine", make([]byte, MaxModule), "the limit is"},
	} {
		parsed, err := wasmbin.Parse(testkit.Fixture(t, c.module))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := load(parsed, c.bundle); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got %v, want an error with %q", name, err, c.says)
		}
	}
	outside, err := load(engine, make([]byte, 16<<20))
	if err != nil {
		t.Fatal(err)
	}
	_, err = outside.Tool("x", 0, limits.Limits{Timeout: time.Minute}).Call(t.Context(), CallSpec{})
	if failed, ok := errors.AsType[*Error](err); !ok || failed.Outcome != ToolTrapped {
		t.Errorf("a bundle outside the memory: got %v", err)
	}
	outside.Close()
	if held := e.SourceUse().Held; held != sources {
		t.Errorf("modules that were refused or closed take %d bytes", held-sources)
	}
}
