package sandbox

import (
	"errors"
	"testing"

	"github.com/toolsrv/toolsrv/runtime/compile"
	"github.com/toolsrv/toolsrv/runtime/instrument"
)

// TestLoadNeverCompiles has code under a name that wazero does not look for: that must not make the server compile a module.
func TestLoadNeverCompiles(t *testing.T) {
	t.Parallel()
	e, release := held(t)
	release()
	f := e.foundry
	module := []byte("\x00asm\x01\x00\x00\x00\x01\x04\x01\x60\x00\x00\x03\x02\x01\x00\x0a\x04\x01\x02\x00\x0b")
	scratch, err := f.cache.Scratch()
	if err != nil {
		t.Fatal(err)
	}
	made, err := compile.Here(scratch, module, 1)
	if err != nil {
		t.Fatal(err)
	}
	wrong := compile.File{Name: "0" + made.Name[1:], Code: made.Code}
	if made.Name[0] == '0' {
		wrong.Name = "1" + made.Name[1:]
	}
	if n, err := f.hand(sum{}, module, wrong, &instrument.Rewritten{}); n != nil || !errors.Is(err, compile.ErrDisk) || !errors.Is(err, errNotFound) {
		t.Errorf("got %v, %v, want %v", n, err, errNotFound)
	}
}

// TestHelperRoom leaves the server what it takes itself.
func TestHelperRoom(t *testing.T) {
	t.Parallel()
	for machine, want := range map[int64]int64{64: 16, 128: 72, 160: 104, 256: 176, 512: 352, 2048: 1024, 65536: 1024} {
		if got := helperRoom(machine << 20); got != want<<20 {
			t.Errorf("of %d MiB a process that compiles may have %d, want %d", machine, got>>20, want)
		}
	}
}
