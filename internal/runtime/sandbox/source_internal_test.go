package sandbox

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/toolsrv/toolsrv/internal/runtime/abi1"
	"github.com/toolsrv/toolsrv/internal/runtime/account"
	"github.com/toolsrv/toolsrv/internal/testkit/wasmtest"
)

// withNoise returns a module with a passive data segment of that many bytes, either incompressible or zeros.
func withNoise(t *testing.T, seed byte, size int, zeros bool) []byte {
	t.Helper()
	noise := make([]byte, size)
	if !zeros {
		_, _ = rand.NewChaCha8([32]byte{seed}).Read(noise)
	}
	noise[0] = seed
	section := append(wasmtest.Bytes(1, 1), wasmtest.LEB(size)...)
	return append(bytes.Clone(logs), wasmtest.Section(11, append(section, noise...))...)
}

// TestSourcesAreCounted loads modules until there is no room for more. Modules that can be compressed still find room, others are refused with the
// reason, and in the end nothing is counted.
// Proves: Limits hold, one by one and in sum
func TestSourcesAreCounted(t *testing.T) {
	t.Parallel()
	e, p := poolEngine(t, Config{Memory: 16 << 20}, "good/small") // so that all modules together have 4 MiB
	p.Close()
	if held := e.SourceUse().Held; held != 0 {
		t.Fatalf("%d bytes are counted before anything is loaded", held)
	}
	load := func(module []byte) *Program {
		t.Helper()
		return loadInternal(t, e, module)
	}
	zeros := load(withNoise(t, 1, 1<<20, true))
	first := load(withNoise(t, 2, 1<<20, false))
	again := load(withNoise(t, 2, 1<<20, false))
	if held := e.SourceUse().Held; held < 2<<20 || held > 2<<20+4096 {
		t.Errorf("%d bytes are counted for two modules of a mebibyte each, one of them loaded twice", held)
	}
	second := load(withNoise(t, 3, 1<<20, false))
	if held := e.SourceUse().Held; held < 3<<20 {
		t.Errorf("%d bytes are counted for three modules", held)
	}
	third := load(withNoise(t, 4, 1<<19, false))
	full := withNoise(t, 5, 2<<20, false)
	before := e.SourceUse().Held
	var crowded *RoomError
	if _, err := e.Load(full, abi1.Modules()...); !errors.As(err, &crowded) || !strings.Contains(err.Error(), "exceeds the limit of 4 MiB") || !strings.Contains(err.Error(), "server.memory") {
		t.Errorf("got %v, want an error that says there is no room", err)
	}
	if held := e.SourceUse().Held; held > before {
		t.Errorf("%d bytes are counted after a module was refused, want at most %d", held, before)
	}
	if zeros.module.code.Source().Unpacked() != nil {
		t.Error("compressing modules has not made room")
	}
	replaced := load(withNoise(t, 6, 1<<20, true)) // this module is compressed at once, since there is no room for it uncompressed
	for _, p := range []*Program{zeros, first, again, second, third, replaced} {
		p.Close()
	}
	if held, memory := e.SourceUse().Held, e.account.Held(account.Memory); held != 0 || memory != 0 {
		t.Errorf("%d bytes of modules and %d of memory are counted at the end, want none", held, memory)
	}
	if p := load(full); e.SourceUse().Held < 2<<20 {
		t.Error("a module that was refused before is loaded now, but not counted")
	} else {
		p.Close()
	}
}

// TestSourceOfLateCall checks that a module's bytes count as long as a call uses it, even after its program was closed.
// Proves: Limits hold, one by one and in sum
func TestSourceOfLateCall(t *testing.T) {
	t.Parallel()
	e, p := poolEngine(t, Config{}, "good/small")
	p.Close()
	if !e.attach(p.module) {
		t.Fatal("the engine is closed")
	}
	if e.SourceUse().Held == 0 {
		t.Error("nothing is counted while a call uses it")
	}
	p.module.leave()
	if held := e.SourceUse().Held; held != 0 {
		t.Errorf("%d bytes are counted at the end", held)
	}
}
